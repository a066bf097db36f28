//! The executor of the CPU device: what it promises to kernels, and every fault it must find.
#![cfg(feature = "cpu")]

use lookback::abi::{lookback_config, lookback_launch};
use lookback::cpu::{
    Access, AccessKind, Activity, BlockOrder, ClusterFault, Collective, CopyFault, ExecutionError, LaunchReport,
    LaunchSettings, MaskFault, MemoryBackend, Party, Schedule, Stop, Synchronization, WeakMemory, WeakSettings, launch,
    launch_on,
};
use lookback::element::{ElementType, Instance, Operator, Problem};
use lookback::strategy::launch::Addresses;
use lookback::strategy::plan::{Plan, ScanRequest, Step};
use lookback::strategy::ring::Ring;
use lookback::strategy::{Blocks, Composition, ConfigError, Descriptor, Mode, ScanConfig, Strategy};
use std::collections::BTreeMap;
use std::ptr;
use std::time::{Duration, Instant};

const KERNEL_SOURCE: &str = include_str!("../cuda/host/test_kernels.cpp");

type Kernel = unsafe extern "C" fn(*const lookback_config, *const lookback_launch);

macro_rules! kernels {
    ($($name:ident)*) => { unsafe extern "C" { $(fn $name(config: *const lookback_config, launch: *const lookback_launch);)* } };
}

kernels! {
    lookback_test_row_scan lookback_test_collectives lookback_test_warp_ahead_of_barrier lookback_test_shared
    lookback_test_every_access lookback_test_chain lookback_test_ticket_chain lookback_test_poll_by_warp
    lookback_test_poll_without_pause lookback_test_order_of_arrival lookback_test_missing_participant
    lookback_test_early_return lookback_test_two_barriers lookback_test_barrier_in_collective
    lookback_test_caller_not_in_mask lookback_test_lane_exited lookback_test_masked_lane_exited lookback_test_lanes_apart
    lookback_test_overlapping_masks lookback_test_source_not_in_mask lookback_test_spin_forever
    lookback_test_wait_for_later_block lookback_test_too_much_shared lookback_test_misaligned lookback_test_copy
    lookback_test_dynamic_shared lookback_test_beyond_dynamic_shared
    lookback_test_copy_without_wait lookback_test_missing_arrival lookback_test_too_many_arrivals
    lookback_test_barrier_not_initialized lookback_test_barrier_not_there lookback_test_copy_left_under_way
    lookback_test_cluster lookback_test_cluster_without_release lookback_test_cluster_reads_behind_arrival
    lookback_test_cluster_without_wait lookback_test_cluster_store_missing lookback_test_cluster_store_left_under_way
    lookback_test_cluster_barrier_not_initialized
    lookback_test_cluster_store_too_soon lookback_test_cluster_store_too_late lookback_test_cluster_no_such_block
    lookback_test_cluster_arrives_twice lookback_test_cluster_waits_at_once lookback_test_cluster_missing_arrival
    lookback_test_sequential_widening lookback_test_reduce_tiles_widening lookback_test_scan_tiles_of_totals
    lookback_test_scan_tiles_widening lookback_test_lookback_widening lookback_test_lookback_four_types
    lookback_test_lookahead_widening lookback_test_lookahead_four_types lookback_test_single_cluster_four_types
}

/// Sixteen bytes, aligned as device memory is.
#[repr(C, align(16))]
#[derive(Clone, Copy, Default, Debug, PartialEq)]
struct Chunk([u32; 4]);

/// The arrays of a launch.
struct Memory {
    input: Vec<Chunk>,
    output: Vec<Chunk>,
    spine: Vec<Chunk>,
    control: Vec<Chunk>,
    descriptors: Vec<Chunk>,
}

impl Memory {
    fn new(values: usize) -> Self {
        let array = || vec![Chunk::default(); values.div_ceil(4)];
        Self {
            input: array(),
            output: array(),
            spine: vec![Chunk::default(); 16],
            control: vec![Chunk::default(); 1],
            descriptors: vec![Chunk::default(); 1024],
        }
    }

    fn arguments(&mut self) -> lookback_launch {
        lookback_launch {
            input: self.input.as_ptr().cast(),
            output: self.output.as_mut_ptr().cast(),
            spine: self.spine.as_mut_ptr().cast(),
            control: self.control.as_mut_ptr().cast(),
            descriptors: self.descriptors.as_mut_ptr().cast(),
            n: 0,
            tiles: 0,
            stride: 0,
            capacity: 4096,
            lead: 0,
            host_epoch: 0,
            ..lookback_launch::default()
        }
    }

    fn run(&mut self, kernel: Kernel, vt: u32, settings: &LaunchSettings) -> Result<LaunchReport, ExecutionError> {
        let config = lookback_config { vt, ..lookback_config::default() };
        let arguments = self.arguments();
        // SAFETY: the kernels are compiled for this executor, and each test makes its arrays large enough.
        unsafe { launch(kernel, &config, &arguments, settings) }
    }

    fn output(&self) -> Vec<u32> {
        self.output.iter().flat_map(|chunk| chunk.0).collect()
    }
}

fn run(kernel: Kernel, settings: &LaunchSettings) -> Result<LaunchReport, ExecutionError> {
    let values = settings.grid_blocks as usize * settings.block_threads as usize * 8;
    Memory::new(values.max(64)).run(kernel, 4, settings)
}

/// Schedules of every kind, for kernels whose outcome must not depend on them.
fn schedules(grid_blocks: u64, block_threads: u32) -> Vec<LaunchSettings> {
    let base = LaunchSettings::new(grid_blocks, block_threads);
    let mut all = vec![
        base.clone(),
        LaunchSettings { resident_blocks: 1, ..base.clone() },
        LaunchSettings { plain_points: true, ..base.clone() },
        LaunchSettings { block_order: BlockOrder::Reverse, resident_blocks: 64, ..base.clone() },
    ];
    for seed in 0..6 {
        let preemption = [0.0, 0.1, 1.0][seed as usize % 3];
        all.push(LaunchSettings {
            schedule: Schedule::Random { preemption },
            block_order: BlockOrder::Random,
            plain_points: seed % 2 == 0,
            resident_blocks: 8,
            seed,
            ..base.clone()
        });
    }
    all
}

/// The line of `test_kernels.cpp` that ends in `// FAULT name`.
fn line(name: &str) -> u32 {
    let marker = format!("// FAULT {name}");
    let found = KERNEL_SOURCE.lines().position(|line| line.ends_with(&marker));
    found.unwrap_or_else(|| panic!("no line is marked '{marker}'")) as u32 + 1
}

/// What a party does where, without how many they are: block, thread, activity, line.
type Summary = (u64, u32, Activity, Option<u32>);

fn summary(party: &Party) -> Summary {
    if let Some(site) = party.site {
        assert!(site.file.ends_with("test_kernels.cpp"), "{site}");
    }
    (party.block, party.thread, party.activity, party.site.map(|site| site.line))
}

fn summaries(parties: &[Party]) -> Vec<Summary> {
    parties.iter().map(summary).collect()
}

fn in_collective(collective: Collective, mask: u32) -> Activity {
    Activity::WarpCollective { collective, mask }
}

const FULL: u32 = u32::MAX;

#[test]
fn collectives_give_each_lane_the_value_it_asks_for() {
    for settings in schedules(3, 64) {
        let mut memory = Memory::new(3 * 64 * 8);
        let report = memory.run(lookback_test_collectives, 4, &settings).unwrap();
        for (thread, found) in memory.output().chunks(8).enumerate() {
            let (warp, lane) = (thread as u32 % 64 / 32, thread as u32 % 32);
            let value_of = |lane: u32| 1000 * warp + lane;
            let masked = if lane.is_multiple_of(2) {
                value_of(lane.saturating_sub(6))
            } else {
                value_of(if lane < 30 { lane + 2 } else { lane })
            };
            let expected = [
                value_of(if lane < 3 { lane } else { lane - 3 }),
                value_of(if lane < 27 { lane + 5 } else { lane }),
                value_of((lane + 1) % 32),
                0x4924_9249,
                0x4210_8421,
                31 + 256 * 46,
                masked,
                if lane < 8 { 0x55 } else { value_of(8) },
            ];
            assert_eq!(found, expected, "thread {thread}, {settings:?}");
        }
        // 6 of all lanes, warp_barrier, 3 + 2 among odd and even lanes, 2 at the end; 2 warps, 3 blocks.
        assert_eq!(report.counters.warp_collectives, 6 * (7 + 5 + 2));
    }
}

#[test]
fn a_warp_may_shuffle_while_others_wait_at_the_barrier() {
    for settings in schedules(2, 128) {
        let mut memory = Memory::new(256);
        let report = memory.run(lookback_test_warp_ahead_of_barrier, 4, &settings).unwrap();
        let output = memory.output();
        assert!(output.iter().all(|&value| value == output[0]), "{settings:?}");
        assert_eq!((report.counters.block_barriers, report.counters.warp_collectives), (2, 200));
    }
}

#[test]
fn shared_memory_is_poisoned_for_every_block_and_each_declaration_is_its_own() {
    for mut settings in schedules(9, 64) {
        settings.poison = 0x5C;
        let mut memory = Memory::new(9 * 64 * 2);
        let report = memory.run(lookback_test_shared, 4, &settings).unwrap();
        assert!(memory.output().chunks(2).all(|pair| pair == [0x5C5C_5C5C, 1]), "{settings:?}");
        assert_eq!(report.counters.shared_bytes, 3 * 128);
    }
}

#[test]
fn every_access_is_counted_as_what_it_is() {
    let counters = run(lookback_test_every_access, &LaunchSettings::new(1, 32)).unwrap().counters;
    let elements = (counters.element_reads, counters.element_writes, counters.spine_reads, counters.spine_writes);
    assert_eq!(elements, (5, 5, 1, 1));
    assert_eq!((counters.protocol_loads, counters.protocol_stores, counters.protocol_updates), (5, 5, 2));
}

/// Does natively what it is asked, and remembers by whom.
#[derive(Default)]
struct Recorder {
    accesses: BTreeMap<AccessKind, Vec<(usize, u32)>>,
    events: Vec<Synchronization>,
    refuse: Option<AccessKind>,
    panic: bool,
}

impl Recorder {
    fn record(&mut self, access: &Access) -> Result<(), String> {
        assert!(!self.panic, "asked to panic");
        assert!(access.site().unwrap().file.ends_with("test_kernels.cpp"));
        self.accesses.entry(access.kind).or_default().push((access.address, access.bytes));
        if self.refuse == Some(access.kind) { Err("refused".to_owned()) } else { Ok(()) }
    }
}

impl MemoryBackend for Recorder {
    fn load(&mut self, access: &Access, value: &mut [u8]) -> Result<(), String> {
        self.record(access)?;
        // SAFETY: the address is one that the kernel would have loaded from.
        unsafe {
            ptr::copy_nonoverlapping(ptr::with_exposed_provenance(access.address), value.as_mut_ptr(), value.len())
        };
        Ok(())
    }

    fn store(&mut self, access: &Access, value: &[u8]) -> Result<(), String> {
        self.record(access)?;
        // SAFETY: the address is one that the kernel would have stored to.
        unsafe {
            ptr::copy_nonoverlapping(value.as_ptr(), ptr::with_exposed_provenance_mut(access.address), value.len())
        };
        Ok(())
    }

    fn fetch_add(&mut self, access: &Access, value: u32) -> Result<u32, String> {
        self.record(access)?;
        let address = ptr::with_exposed_provenance_mut::<u32>(access.address);
        // SAFETY: the address is one that the kernel would have added to.
        unsafe {
            let previous = address.read();
            address.write(previous.wrapping_add(value));
            Ok(previous)
        }
    }

    fn fence(&mut self, access: &Access) -> Result<(), String> {
        self.record(access)
    }

    fn synchronize(&mut self, event: Synchronization) -> Result<(), String> {
        self.events.push(event);
        Ok(())
    }
}

fn run_on(backend: &mut Recorder, memory: &mut Memory, kernel: Kernel) -> Result<LaunchReport, ExecutionError> {
    let config = lookback_config { vt: 4, ..lookback_config::default() };
    // SAFETY: as in `Memory::run`.
    unsafe { launch_on(backend, kernel, &config, &memory.arguments(), &LaunchSettings::new(1, 32)) }
}

#[test]
fn every_kind_of_access_passes_through_the_back_end_and_natively_does_the_same() {
    let fill = |memory: &mut Memory| {
        for (number, chunk) in
            (0..).zip(memory.input.iter_mut().chain(&mut memory.spine).chain(&mut memory.descriptors))
        {
            chunk.0 = [4 * number, 4 * number + 1, 4 * number + 2, 4 * number + 3];
        }
    };
    let (mut native, mut recorded) = (Memory::new(64), Memory::new(64));
    fill(&mut native);
    fill(&mut recorded);
    let mut recorder = Recorder::default();
    let native_report = native.run(lookback_test_every_access, 4, &LaunchSettings::new(1, 32)).unwrap();
    let report = run_on(&mut recorder, &mut recorded, lookback_test_every_access).unwrap();

    assert_eq!(report.counters, native_report.counters);
    assert_eq!(recorded.output(), native.output());
    assert_eq!(recorded.descriptors, native.descriptors);
    assert_eq!(recorded.spine, native.spine);
    let widths = |kind: AccessKind| recorder.accesses[&kind].iter().map(|access| access.1).collect::<Vec<_>>();
    for kind in AccessKind::ALL.into_iter().filter(|kind| *kind != AccessKind::ClusterStore) {
        let expected: &[u32] = match kind {
            AccessKind::ElementLoad | AccessKind::ElementStore => &[16, 4],
            AccessKind::SharedLoad | AccessKind::SharedStore => &[16, 4],
            AccessKind::RelaxedLoad | AccessKind::RelaxedStore => &[4, 8, 16],
            AccessKind::PayloadLoad | AccessKind::PayloadStore => &[16],
            AccessKind::Fence => &[0],
            _ => &[4],
        };
        assert_eq!(widths(kind), expected, "{kind:?}");
    }
    let first_element = recorder.accesses[&AccessKind::ElementLoad][0].0;
    assert_eq!(first_element, recorded.input.as_ptr().addr());
}

#[test]
fn the_back_end_is_told_who_has_met() {
    let mut recorder = Recorder::default();
    run_on(&mut recorder, &mut Memory::new(64), lookback_test_warp_ahead_of_barrier).unwrap();
    let warp = Synchronization::Warp { block: 0, warp: 0, mask: FULL, collective: Collective::ShuffleIndex };
    let barrier = Synchronization::BlockBarrier { block: 0 };
    let events = &recorder.events;
    assert!(matches!(events[0], Synchronization::SharedStorage { block: 0, bytes: 4, .. }));
    assert!(events[1..101].iter().all(|event| *event == warp));
    assert_eq!(events[101..], [barrier, Synchronization::BlockEnd { block: 0 }]);
}

#[test]
fn a_back_end_that_refuses_or_panics_ends_the_launch() {
    for refused in AccessKind::ALL.into_iter().filter(|kind| *kind != AccessKind::ClusterStore) {
        let mut recorder = Recorder { refuse: Some(refused), ..Recorder::default() };
        match run_on(&mut recorder, &mut Memory::new(64), lookback_test_every_access) {
            Err(ExecutionError::Backend { message, party }) => {
                assert_eq!(message, "refused");
                assert_eq!((party.block, party.thread, party.activity), (0, 0, Activity::Access));
            }
            other => panic!("{refused:?}: {other:?}"),
        }
    }
    let mut recorder = Recorder { panic: true, ..Recorder::default() };
    match run_on(&mut recorder, &mut Memory::new(64), lookback_test_every_access) {
        Err(ExecutionError::Backend { message, .. }) => assert_eq!(message, "panicked: asked to panic"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_chain_of_blocks_is_as_long_as_it_is_and_its_span_is_carried_from_store_to_load() {
    for settings in schedules(20, 32) {
        // Its blocks wait for their index: they must be resident together where they do not start in order.
        let settings = LaunchSettings { resident_blocks: 64, ..settings };
        let report = run(lookback_test_chain, &settings).unwrap();
        assert_eq!(report.counters.span_steps, 20, "{settings:?}");
        assert_eq!(report.counters.operator_applications, 20);
        assert_eq!((report.counters.lookbacks, report.counters.lookback_distance_tiles), (19, 19));
    }
}

#[test]
fn tickets_make_progress_in_any_start_order_even_with_one_resident_block() {
    for settings in schedules(50, 64) {
        for resident_blocks in [1, 2, 7] {
            let settings = LaunchSettings { resident_blocks, ..settings.clone() };
            run(lookback_test_ticket_chain, &settings).unwrap_or_else(|error| panic!("{error}, {settings:?}"));
        }
    }
}

#[test]
fn polling_is_not_lost_progress_while_somebody_computes() {
    for settings in schedules(2, 64) {
        run(lookback_test_poll_by_warp, &settings).unwrap_or_else(|error| panic!("{error}, {settings:?}"));
    }
}

#[test]
fn a_polling_loop_without_a_pause_still_lets_the_others_run() {
    for settings in schedules(2, 64) {
        let settings = LaunchSettings { block_order: BlockOrder::Reverse, resident_blocks: 2, ..settings };
        run(lookback_test_poll_without_pause, &settings).unwrap_or_else(|error| panic!("{error}, {settings:?}"));
    }
}

/// The order in which threads come to a counter, with the trace of the run.
fn arrivals(settings: &LaunchSettings) -> (Vec<u32>, Vec<u8>) {
    let mut memory = Memory::new(8 * 64);
    let report = memory.run(lookback_test_order_of_arrival, 4, settings).unwrap();
    (memory.output(), report.trace.unwrap())
}

fn random(seed: u64) -> LaunchSettings {
    LaunchSettings {
        schedule: Schedule::Random { preemption: 0.3 },
        block_order: BlockOrder::Random,
        trace: true,
        seed,
        ..LaunchSettings::new(8, 64)
    }
}

#[test]
fn one_seed_is_one_run_and_another_seed_another() {
    assert_eq!(arrivals(&random(1)), arrivals(&random(1)));
    assert_ne!(arrivals(&random(1)).0, arrivals(&random(2)).0);
}

#[test]
fn a_run_alone_and_beside_three_others_leaves_the_same_trace() {
    let run_seed = |seed| {
        let settings = LaunchSettings { grid_blocks: 40, ..random(seed) };
        run(lookback_test_ticket_chain, &settings).unwrap().trace.unwrap()
    };
    let alone = (0..4).map(run_seed).collect::<Vec<_>>();
    let beside = std::thread::scope(|scope| {
        let others = (0..4).map(|seed| scope.spawn(move || run_seed(seed))).collect::<Vec<_>>();
        others.into_iter().map(|other| other.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(alone[0].len() > 1000);
    assert!(alone == beside);
}

#[test]
fn an_empty_grid_is_an_empty_launch() {
    assert_eq!(run(lookback_test_row_scan, &LaunchSettings::new(0, 32)).unwrap(), LaunchReport::default());
}

#[test]
fn settings_that_cannot_be_launched_are_refused() {
    let base = LaunchSettings::new(1, 32);
    for settings in [
        LaunchSettings { block_threads: 0, ..base.clone() },
        LaunchSettings { block_threads: 33, ..base.clone() },
        LaunchSettings { block_threads: 1056, ..base.clone() },
        LaunchSettings { resident_blocks: 0, ..base.clone() },
        LaunchSettings { is_cluster: true, grid_blocks: 17, ..base.clone() },
        LaunchSettings { schedule: Schedule::Random { preemption: 1.5 }, ..base.clone() },
        LaunchSettings { schedule: Schedule::Random { preemption: f64::NAN }, ..base },
    ] {
        let error = run(lookback_test_row_scan, &settings).unwrap_err();
        assert!(matches!(error, ExecutionError::InvalidSettings { .. }), "{error}");
    }
}

/// Runs a faulty kernel under every schedule; `check` sees the fault each time.
fn each_fault(grid_blocks: u64, block_threads: u32, kernel: Kernel, check: impl Fn(ExecutionError)) {
    for settings in schedules(grid_blocks, block_threads) {
        let start = Instant::now();
        let error = run(kernel, &settings).expect_err("the kernel is faulty");
        let seconds = start.elapsed();
        assert!(seconds < Duration::from_secs(1), "{seconds:?} to find {error}");
        check(error);
        // What the fault left behind does not disturb the next launch on this OS thread.
        run(lookback_test_warp_ahead_of_barrier, &LaunchSettings::new(2, 64)).unwrap();
    }
}

fn by_thread(parties: &[Party]) -> Vec<Summary> {
    let mut parties = summaries(parties);
    parties.sort_by_key(|party| party.1);
    parties
}

/// The parties of a barrier divergence, by thread.
fn divergence(error: ExecutionError) -> Vec<Summary> {
    match error {
        ExecutionError::BarrierDivergence { parties } => by_thread(&parties),
        other => panic!("{other}"),
    }
}

#[test]
fn a_missing_barrier_participant_is_barrier_divergence() {
    let at_barrier = (Activity::BlockBarrier, Some(line("missing_participant")));
    each_fault(1, 64, lookback_test_missing_participant, |error| {
        let parties = divergence(error);
        assert!(parties.contains(&(0, 5, Activity::Exited, None)), "{parties:?}");
        assert!(parties.iter().any(|party| (party.2, party.3) == at_barrier), "{parties:?}");
    });
}

#[test]
fn an_early_return_before_a_barrier_is_barrier_divergence() {
    let at_barrier = (Activity::BlockBarrier, Some(line("early_return")));
    each_fault(1, 64, lookback_test_early_return, |error| {
        let parties = divergence(error);
        let exited = parties.iter().find(|party| party.2 == Activity::Exited).unwrap();
        assert!(exited.1 >= 32, "{parties:?}");
        let waiting = parties.iter().find(|party| (party.2, party.3) == at_barrier).unwrap();
        assert!(waiting.1 < 32, "{parties:?}");
    });
}

#[test]
fn barriers_of_different_lines_are_barrier_divergence() {
    let lines = [line("two_barriers first"), line("two_barriers second")];
    each_fault(1, 64, lookback_test_two_barriers, |error| {
        let parties = divergence(error);
        assert_eq!(parties.len(), 2);
        assert!(parties[0].1 < 32 && parties[1].1 >= 32);
        assert_eq!(parties.iter().map(|party| party.3.unwrap()).collect::<Vec<_>>(), lines);
        assert!(parties.iter().all(|party| party.2 == Activity::BlockBarrier));
    });
}

#[test]
fn a_lane_at_the_barrier_while_its_warp_shuffles_is_barrier_divergence() {
    let barrier = (Activity::BlockBarrier, Some(line("barrier_in_collective barrier")));
    let shuffle = (in_collective(Collective::ShuffleUp, FULL), Some(line("barrier_in_collective shuffle")));
    each_fault(1, 64, lookback_test_barrier_in_collective, |error| {
        let parties = divergence(error);
        assert!(parties.iter().any(|party| (party.2, party.3) == barrier), "{parties:?}");
        assert!(parties.iter().any(|party| (party.2, party.3) == shuffle && party.1 >= 32), "{parties:?}");
    });
}

/// The parties of a wrong mask, by thread.
fn wrong_mask(error: ExecutionError, fault: MaskFault, mask: u32) -> Vec<Summary> {
    match error {
        ExecutionError::WrongMask { fault: found, mask: found_mask, parties } => {
            assert_eq!((found, found_mask), (fault, mask));
            by_thread(&parties)
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_lane_outside_its_own_mask_is_a_wrong_mask() {
    let site = Some(line("caller_not_in_mask"));
    each_fault(1, 32, lookback_test_caller_not_in_mask, |error| {
        let parties = wrong_mask(error, MaskFault::CallerNotInMask, 0xf0);
        assert_eq!(parties, [(0, 3, in_collective(Collective::ShuffleIndex, 0xf0), site)]);
    });
}

#[test]
fn an_exited_lane_in_the_mask_is_a_wrong_mask() {
    let shuffle = (in_collective(Collective::ShuffleDown, FULL), Some(line("lane_exited")));
    each_fault(1, 32, lookback_test_lane_exited, |error| {
        let parties = wrong_mask(error, MaskFault::LaneExited, FULL);
        assert!(parties.contains(&(0, 9, Activity::Exited, None)), "{parties:?}");
        assert!(parties.iter().any(|party| (party.2, party.3) == shuffle), "{parties:?}");
    });
    let ballot = (in_collective(Collective::Ballot, 0xff), Some(line("masked_lane_exited")));
    each_fault(1, 32, lookback_test_masked_lane_exited, |error| {
        let parties = wrong_mask(error, MaskFault::LaneExited, 0xff);
        assert!(parties.iter().any(|party| party.2 == Activity::Exited), "{parties:?}");
        assert!(parties.iter().any(|party| (party.2, party.3) == ballot && party.1 < 7), "{parties:?}");
    });
}

#[test]
fn lanes_in_different_collectives_are_a_wrong_mask() {
    let lines = [line("lanes_apart first"), line("lanes_apart second")];
    each_fault(1, 32, lookback_test_lanes_apart, |error| {
        let parties = wrong_mask(error, MaskFault::LaneElsewhere, FULL);
        assert_eq!(parties.len(), 2);
        assert!(parties[0].1 < 16 && parties[1].1 >= 16, "{parties:?}");
        assert_eq!(parties.iter().map(|party| party.3.unwrap()).collect::<Vec<_>>(), lines);
    });
}

#[test]
fn masks_that_overlap_are_wrong_masks() {
    each_fault(1, 32, lookback_test_overlapping_masks, |error| match error {
        ExecutionError::WrongMask { fault: MaskFault::LaneElsewhere, mask, parties } => {
            let parties = by_thread(&parties);
            let first = (in_collective(Collective::WarpBarrier, 0x1f), Some(line("overlapping_masks first")));
            let second = (in_collective(Collective::WarpBarrier, 0xf8), Some(line("overlapping_masks second")));
            assert!(mask == 0x1f || mask == 0xf8);
            assert_eq!(parties.iter().map(|party| (party.2, party.3)).collect::<Vec<_>>(), [first, second]);
        }
        other => panic!("{other}"),
    });
}

#[test]
fn a_shuffle_from_outside_its_mask_is_a_wrong_mask() {
    let site = Some(line("source_not_in_mask"));
    each_fault(1, 32, lookback_test_source_not_in_mask, |error| {
        let parties = wrong_mask(error, MaskFault::SourceNotInMask, 0x3);
        assert_eq!(parties.len(), 1);
        assert_eq!((parties[0].2, parties[0].3), (in_collective(Collective::ShuffleIndex, 0x3), site));
    });
}

#[test]
fn waiting_for_nobody_is_lost_progress_and_every_waiting_thread_is_named() {
    let poll = (Activity::SpinWait, Some(line("spin_forever poll")));
    let barrier = (Activity::BlockBarrier, Some(line("spin_forever barrier")));
    each_fault(3, 64, lookback_test_spin_forever, |error| match error {
        ExecutionError::LostProgress { parties, waiting_blocks } => {
            let found = summaries(&parties);
            let resident = 3 - waiting_blocks;
            for block in found.iter().map(|party| party.0) {
                assert!(found.contains(&(block, 0, poll.0, poll.1)), "{found:?}");
                let waiting = found.iter().position(|party| party.0 == block && (party.2, party.3) == barrier);
                let waiting = waiting.unwrap_or_else(|| panic!("{found:?}"));
                assert_eq!((found[waiting].1, parties[waiting].threads), (1, 63));
            }
            assert_eq!(found.len() as u64, 2 * resident);
        }
        other => panic!("{other}"),
    });
}

#[test]
fn waiting_for_a_block_that_cannot_start_is_lost_progress() {
    let mut settings = LaunchSettings { resident_blocks: 1, ..LaunchSettings::new(5, 64) };
    let start = Instant::now();
    match run(lookback_test_wait_for_later_block, &settings) {
        Err(ExecutionError::LostProgress { parties, waiting_blocks: 4 }) => {
            assert_eq!(summaries(&parties), [(0, 0, Activity::SpinWait, Some(line("wait_for_later_block")))]);
        }
        other => panic!("{other:?}"),
    }
    assert!(start.elapsed() < Duration::from_secs(2));
    settings.resident_blocks = 2;
    run(lookback_test_wait_for_later_block, &settings).unwrap();
}

#[test]
fn many_polling_threads_are_still_reported_soon() {
    let settings = LaunchSettings { resident_blocks: 8, ..LaunchSettings::new(8, 256) };
    let start = Instant::now();
    let error = run(lookback_test_spin_forever, &settings).unwrap_err();
    assert!(matches!(error, ExecutionError::LostProgress { .. }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}

#[test]
fn more_shared_memory_than_allowed_is_refused() {
    each_fault(1, 32, lookback_test_too_much_shared, |error| match error {
        ExecutionError::SharedMemory { needed_bytes: 81920, limit_bytes: 49152, party } => {
            assert_eq!(summary(&party).3, Some(line("too_much_shared")));
        }
        other => panic!("{other}"),
    });
    let settings = LaunchSettings { shared_limit_bytes: 100 * 1024, ..LaunchSettings::new(1, 32) };
    assert_eq!(run(lookback_test_too_much_shared, &settings).unwrap().counters.shared_bytes, 81920);
}

#[test]
fn a_block_has_the_dynamic_shared_memory_that_the_launch_gives_and_no_more() {
    const ASKED: u32 = 100;
    let given = |bytes| LaunchSettings { dynamic_shared_bytes: bytes, ..LaunchSettings::new(2, 32) };
    for bytes in [ASKED, ASKED + 1] {
        let report = Memory::new(64).run(lookback_test_dynamic_shared, ASKED, &given(bytes)).expect("it is given");
        assert_eq!(report.counters.shared_bytes, u64::from(bytes));
    }
    for bytes in [ASKED - 1, 0] {
        match Memory::new(64).run(lookback_test_dynamic_shared, ASKED, &given(bytes)) {
            Err(ExecutionError::DynamicSharedMemory { asked_bytes: ASKED, given_bytes, party }) => {
                assert_eq!((given_bytes, summary(&party).3), (bytes, Some(line("dynamic_shared"))));
            }
            other => panic!("{other:?}"),
        }
    }
    let beyond = |bytes| {
        let (mut memory, mut weak) = (Memory::new(64), WeakMemory::new(0, WeakSettings::default()));
        let config = lookback_config { vt: ASKED, ..lookback_config::default() };
        let arguments = memory.arguments();
        // SAFETY: as in `Memory::run`.
        unsafe { launch_on(&mut weak, lookback_test_beyond_dynamic_shared, &config, &arguments, &given(bytes)) }
    };
    beyond(ASKED + 1).expect("the launch gives a byte more");
    match beyond(ASKED) {
        Err(ExecutionError::Backend { message, party }) => {
            assert!(message.contains("outside the shared memory"), "{message}");
            assert_eq!(summary(&party).3, Some(line("beyond_dynamic_shared")));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn copies_land_before_whoever_waits_goes_on() {
    let values = 8 * 5 * 64;
    for settings in schedules(8, 64) {
        let mut memory = Memory::new(values);
        for (value, chunk) in (0..).zip(&mut memory.input) {
            chunk.0 = [4 * value, 4 * value + 1, 4 * value + 2, 4 * value + 3];
        }
        let report =
            memory.run(lookback_test_copy, 5, &settings).unwrap_or_else(|error| panic!("{settings:?}: {error}"));
        assert!(memory.output() == (0..values as u32).collect::<Vec<_>>(), "{settings:?}");
        assert_eq!(report.counters.element_reads, values as u64);
    }
}

#[test]
fn whoever_does_not_wait_for_a_copy_finds_what_was_there_before() {
    let mut early = 0;
    for settings in schedules(1, 32) {
        let mut memory = Memory::new(64);
        memory.input.fill(Chunk([7; 4]));
        memory.run(lookback_test_copy_without_wait, 1, &settings).expect("it waits before it ends");
        early += u32::from(memory.output()[..32].contains(&0xa5a5_a5a5));
    }
    assert!(early >= 8, "{early}");
}

#[test]
fn copies_are_ordered_by_their_barrier_alone() {
    let run = |kernel: Kernel, seed: u64| {
        let mut memory = Memory::new(2 * 3 * 64);
        let (config, arguments) = (lookback_config { vt: 3, ..lookback_config::default() }, memory.arguments());
        let mut weak = WeakMemory::new(seed, WeakSettings::default());
        weak.add_array("the input", arguments.input.addr(), 4 * 2 * 3 * 64, 4, false);
        weak.add_array("the output", arguments.output.addr(), 4 * 2 * 3 * 64, 4, true);
        let schedule = Schedule::Random { preemption: 0.2 };
        let settings = LaunchSettings { seed, schedule, ..LaunchSettings::new(2, 64) };
        // SAFETY: as in `Memory::run`.
        unsafe { launch_on(&mut weak, kernel, &config, &arguments, &settings) }
    };
    for seed in 0..40 {
        run(lookback_test_copy, seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    let error = run(lookback_test_copy_without_wait, 0).unwrap_err().to_string();
    assert!(error.contains("nobody has written") || error.contains("data race"), "{error}");
}

#[test]
fn barriers_of_copies_that_are_used_wrongly_are_reported() {
    each_fault(1, 64, lookback_test_missing_arrival, |error| match error {
        ExecutionError::Deadlock { parties, .. } => {
            assert_eq!(summary(&parties[0]), (0, 0, Activity::CopyBarrier, Some(line("missing_arrival"))));
        }
        other => panic!("{other}"),
    });
    let is_copy_fault = |error, expected: CopyFault, at: &str| match error {
        ExecutionError::Copy { fault, party } => {
            assert_eq!((fault, summary(&party).3), (expected, Some(line(at))));
        }
        other => panic!("{other}"),
    };
    each_fault(1, 32, lookback_test_barrier_not_initialized, |error| {
        is_copy_fault(error, CopyFault::NotInitialized, "barrier_not_initialized");
    });
    each_fault(1, 32, lookback_test_barrier_not_there, |error| {
        is_copy_fault(error, CopyFault::NotThere, "barrier_not_there");
    });
    // Round robin: the copy does not land in between, or the phase would be over and the arrival one of the next.
    let error = run(lookback_test_too_many_arrivals, &LaunchSettings::new(1, 32)).unwrap_err();
    is_copy_fault(error, CopyFault::TooManyArrivals, "too_many_arrivals");
}

#[test]
fn a_block_may_not_end_before_its_copies() {
    let error = run(lookback_test_copy_left_under_way, &LaunchSettings::new(1, 32)).unwrap_err();
    assert!(matches!(error, ExecutionError::Copy { fault: CopyFault::StillUnderWay, .. }), "{error}");
}

/// A launch of one cluster.
fn cluster(settings: LaunchSettings) -> LaunchSettings {
    LaunchSettings { is_cluster: true, ..settings }
}

#[test]
fn the_blocks_of_a_cluster_are_resident_together_and_meet() {
    let (blocks, rounds) = (7, 5);
    for settings in schedules(blocks, 64).into_iter().map(cluster) {
        let mut memory = Memory::new(7 * 5 * 64);
        let report = memory
            .run(lookback_test_cluster, rounds, &settings)
            .unwrap_or_else(|error| panic!("{settings:?}: {error}"));
        for (place, &found) in memory.output().iter().enumerate() {
            let (round, rank) = (place / 64 / 7, place / 64 % 7);
            assert_eq!(found as usize, 100 * round + (rank + 6) % 7, "{settings:?}");
        }
        // The start, and each round.
        assert_eq!(report.counters.block_barriers, blocks * (1 + u64::from(rounds)), "{settings:?}");
    }
}

#[test]
fn blocks_of_a_cluster_are_ordered_by_what_they_wait_for_and_arrivals_release() {
    let run = |kernel: Kernel, seed: u64| {
        let mut memory = Memory::new(5 * 3 * 64);
        let (config, arguments) = (lookback_config { vt: 5, ..lookback_config::default() }, memory.arguments());
        let mut weak = WeakMemory::new(seed, WeakSettings::default());
        weak.add_array("the output", arguments.output.addr(), 4 * 5 * 3 * 64, 4, true);
        let schedule = Schedule::Random { preemption: 0.2 };
        let settings = cluster(LaunchSettings { seed, schedule, ..LaunchSettings::new(3, 64) });
        // SAFETY: as in `Memory::run`.
        unsafe { launch_on(&mut weak, kernel, &config, &arguments, &settings) }
    };
    for seed in 0..40 {
        run(lookback_test_cluster, seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        for kernel in [
            lookback_test_cluster_without_release as Kernel,
            lookback_test_cluster_reads_behind_arrival,
            lookback_test_cluster_without_wait,
        ] {
            let error = run(kernel, seed).expect_err("nothing orders store and load").to_string();
            let is_found = error.contains("data race") || error.contains("nobody has written");
            assert!(is_found, "seed {seed}: {error}");
        }
    }
}

#[test]
fn clusters_that_are_used_wrongly_are_reported() {
    let settings = cluster(LaunchSettings::new(2, 32));
    for (kernel, expected, at) in [
        (
            lookback_test_cluster_store_too_soon as Kernel,
            ClusterFault::NotStarted { rank: 1 },
            "cluster_store_too_soon",
        ),
        (lookback_test_cluster_store_too_late, ClusterFault::Ended { rank: 0 }, "cluster_store_too_late"),
        (lookback_test_cluster_no_such_block, ClusterFault::NoSuchBlock { rank: 2 }, "cluster_no_such_block"),
        (lookback_test_cluster_arrives_twice, ClusterFault::ArrivedTwice, "cluster_arrives_twice"),
        (lookback_test_cluster_waits_at_once, ClusterFault::NotArrived, "cluster_waits_at_once"),
    ] {
        match run(kernel, &settings) {
            Err(ExecutionError::Cluster { fault, party }) => {
                assert_eq!((fault, summary(&party).3), (expected, Some(line(at))));
            }
            other => panic!("{at}: {other:?}"),
        }
    }
    let no_cluster = run(lookback_test_cluster_waits_at_once, &LaunchSettings::new(2, 32));
    assert!(
        matches!(no_cluster, Err(ExecutionError::Cluster { fault: ClusterFault::NoCluster, .. })),
        "{no_cluster:?}"
    );
    match run(lookback_test_cluster_barrier_not_initialized, &settings) {
        Err(ExecutionError::Copy { fault: CopyFault::NotInitialized, party }) => {
            assert_eq!(summary(&party).3, Some(line("cluster_barrier_not_initialized")));
        }
        other => panic!("{other:?}"),
    }
    let left = run(lookback_test_cluster_store_left_under_way, &settings);
    assert!(matches!(left, Err(ExecutionError::Copy { fault: CopyFault::StillUnderWay, .. })), "{left:?}");
    match run(lookback_test_cluster_store_missing, &settings) {
        Err(ExecutionError::Deadlock { parties, waiting_blocks: 0 }) => {
            assert_eq!(summaries(&parties)[0], (0, 0, Activity::CopyBarrier, Some(line("cluster_store_missing"))));
        }
        other => panic!("{other:?}"),
    }
    match run(lookback_test_cluster_missing_arrival, &settings) {
        Err(ExecutionError::Deadlock { parties, waiting_blocks: 0 }) => {
            assert_eq!(summaries(&parties)[0], (0, 0, Activity::ClusterBarrier, Some(line("cluster_missing_arrival"))));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_misaligned_vector_access_is_refused() {
    each_fault(1, 32, lookback_test_misaligned, |error| match error {
        ExecutionError::Misaligned { address, bytes: 16, party } => {
            assert_eq!(address % 16, 4);
            assert_eq!(summary(&party), (0, 2, Activity::Access, Some(line("misaligned"))));
        }
        other => panic!("{other}"),
    });
}

#[test]
fn a_stopped_block_is_missed_by_those_who_wait_for_it() {
    for settings in schedules(6, 32) {
        let settings =
            LaunchSettings { resident_blocks: 64, stop: Some(Stop::Block { block: 3, after_points: 0 }), ..settings };
        match run(lookback_test_chain, &settings) {
            Err(ExecutionError::LostProgress { parties, .. }) => {
                let found = summaries(&parties);
                assert!(found.contains(&(4, 0, Activity::SpinWait, Some(line("chain")))), "{found:?}");
                assert!(found.iter().any(|party| party.0 == 3 && party.2 == Activity::Stopped), "{found:?}");
            }
            other => panic!("{settings:?}: {other:?}"),
        }
    }
}

#[test]
fn a_launch_whose_last_block_is_stopped_ends_and_says_so() {
    for settings in schedules(6, 32) {
        let settings =
            LaunchSettings { resident_blocks: 64, stop: Some(Stop::Block { block: 5, after_points: 1 }), ..settings };
        assert_eq!(run(lookback_test_chain, &settings).unwrap().stopped_blocks, 1, "{settings:?}");
    }
}

#[test]
fn a_stopped_block_that_keeps_the_only_slot_is_a_deadlock() {
    let stop = Some(Stop::Block { block: 0, after_points: 0 });
    let settings = LaunchSettings { resident_blocks: 1, stop, ..LaunchSettings::new(3, 32) };
    match run(lookback_test_ticket_chain, &settings) {
        Err(ExecutionError::Deadlock { parties, waiting_blocks: 2 }) => {
            assert!(parties.iter().all(|party| party.block == 0 && party.activity == Activity::Stopped));
            assert_eq!(parties.iter().map(|party| party.threads).sum::<u32>(), 32);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_launch_can_be_stopped_at_every_point() {
    let settings = random(7);
    for after_points in 0..200 {
        let settings = LaunchSettings { stop: Some(Stop::Launch { after_points }), ..settings.clone() };
        assert_eq!(
            run(lookback_test_order_of_arrival, &settings),
            Err(ExecutionError::Stopped { points: after_points })
        );
    }
}

#[test]
fn errors_read_as_sentences() {
    let error = run(lookback_test_caller_not_in_mask, &LaunchSettings::new(1, 32)).unwrap_err().to_string();
    let site = format!("test_kernels.cpp:{}", line("caller_not_in_mask"));
    assert!(error.starts_with("wrong mask 0x000000f0: the calling lane is not in its own mask: block 0 thread 3 in "));
    assert!(error.ends_with(&site), "{error}");
}

/// Scans rows of 128 and checks them; returns elements a second.
fn scan_rows(tiles: u64, block_threads: u32, vt: u32, settings: &LaunchSettings) -> f64 {
    let tile = block_threads as usize * vt as usize;
    let mut memory = Memory::new(tiles as usize * tile);
    for (number, chunk) in (0..).zip(&mut memory.input) {
        chunk.0 = [number, number ^ 5, 3, 1];
    }
    let start = Instant::now();
    let report = memory.run(lookback_test_row_scan, vt, settings).unwrap();
    let elapsed = start.elapsed();
    let input = memory.input.iter().flat_map(|chunk| chunk.0);
    let mut sum = 0u32;
    for (position, (value, found)) in input.zip(memory.output()).enumerate() {
        sum = if position % tile == 0 { value } else { sum.wrapping_add(value) };
        assert_eq!(found, sum, "element {position}");
    }
    let elements = tiles * tile as u64;
    assert_eq!(report.counters.element_reads, elements);
    assert_eq!(report.counters.element_writes, elements);
    assert_eq!(report.counters.block_barriers, tiles);
    assert_eq!(report.counters.warp_collectives, elements / 128 * 6);
    elements as f64 / elapsed.as_secs_f64()
}

#[test]
fn a_scan_by_rows_is_right_for_every_schedule() {
    for settings in schedules(5, 96) {
        scan_rows(5, 96, 8, &settings);
    }
}

#[test]
fn the_speed_of_the_executor_is_printed() {
    let settings = LaunchSettings::new(256, 256);
    let fair = (0..3).map(|_| scan_rows(256, 256, 16, &settings)).fold(0.0, f64::max);
    let schedule = Schedule::Random { preemption: 0.1 };
    let random = scan_rows(256, 256, 16, &LaunchSettings { schedule, ..settings });
    println!("row scan, 256 threads x 16 u32: fair {:.1}, random {:.1} M elements/s", fair / 1e6, random / 1e6);
}

/// The kernel that is compiled for a step of a plan.
fn kernel_of(step: &Step, problems: [Problem; 2]) -> Kernel {
    let [widening, four_types] = problems;
    let kernels: [(&str, Problem, Kernel); 9] = [
        ("sequential", widening, lookback_test_sequential_widening),
        ("reduce_tiles", widening, lookback_test_reduce_tiles_widening),
        ("scan_tiles", widening.of_spine(), lookback_test_scan_tiles_of_totals),
        ("scan_tiles", widening, lookback_test_scan_tiles_widening),
        ("lookback", widening, lookback_test_lookback_widening),
        ("lookback", four_types, lookback_test_lookback_four_types),
        ("lookahead", widening, lookback_test_lookahead_widening),
        ("lookahead", four_types, lookback_test_lookahead_four_types),
        ("single_cluster", four_types, lookback_test_single_cluster_four_types),
    ];
    let found = kernels.iter().find(|(name, problem, _)| (*name, *problem) == (step.kernel.name(), step.problem));
    found.unwrap_or_else(|| panic!("{} of {} is not compiled", step.kernel.name(), step.problem)).2
}

/// Runs the plan of a scan of bytes, in tiles of 512.
fn scans_bytes(strategy: Strategy, problem: Problem, problems: [Problem; 2]) {
    let lengths_and_offsets = [(1, 0, 0), (4999, 0, 0), (2048, 5, 0), (5003, 0, 1), (4998, 1, 3)];
    let output_bytes = problem.output_bytes();
    for (index, (n, input_offset, output_offset)) in lengths_and_offsets.into_iter().enumerate() {
        for &mode in Mode::ALL {
            let mut memory = Memory::new(6144);
            let bytes: Vec<u8> = (0..16 * memory.input.len()).map(|i| (i * i % 251) as u8).collect();
            for (chunk, bytes) in memory.input.iter_mut().zip(bytes.chunks(16)) {
                chunk.0 = std::array::from_fn(|i| u32::from_le_bytes(bytes[4 * i..][..4].try_into().unwrap()));
            }
            let items = &bytes[input_offset..][..n];
            let mut prefixes: Vec<u32> = vec![0];
            prefixes.extend(items.iter().scan(0, |sum, &item| {
                *sum += u32::from(item);
                Some(*sum)
            }));
            let expected = &prefixes[usize::from(mode == Mode::Inclusive)..][..n];
            let arguments = memory.arguments();
            let addresses = Addresses {
                input: (arguments.input.expose_provenance() + input_offset) as u64,
                output: (arguments.output.expose_provenance() + output_offset * output_bytes) as u64,
                scratch: arguments.spine.expose_provenance() as u64,
                control: arguments.control.expose_provenance() as u64,
                descriptors: arguments.descriptors.expose_provenance() as u64,
                capacity: 128,
                ..Addresses::default()
            };
            let offset_of = |address: u64| (address % u64::from(ScanRequest::OFFSETS)) as u32;
            let config = ScanConfig {
                vt: 8,
                block_threads: 64,
                composition: [Composition::ScanThenPropagate, Composition::ReduceThenScan][index % 2],
                descriptor: [None, Some(Descriptor::Packed128), Some(Descriptor::Split)][index % 3],
                ..ScanConfig::default()
            };
            let request = ScanRequest {
                input_offset: offset_of(addresses.input),
                output_offset: offset_of(addresses.output),
                ..ScanRequest::of(problem, strategy, mode, config, n as u64)
            };
            let case = format!("{strategy} of {problem}: {n} from {input_offset} to {output_offset}, {mode}");
            let plan = Plan::new(&request).unwrap_or_else(|error| panic!("{case}: {error}"));
            assert!(plan.scratch_bytes as usize <= size_of_val(&memory.spine[..]), "{case}");
            for step in &plan.steps {
                let shape = &strategy.row().shape;
                let blocks = match shape.blocks {
                    Blocks::Persistent | Blocks::Cluster => step.grid_blocks.min(3),
                    Blocks::PerTile | Blocks::Single => step.grid_blocks,
                };
                let stages = if shape.blocks == Blocks::Persistent { 2 } else { 0 };
                let settings = LaunchSettings {
                    is_cluster: shape.blocks == Blocks::Cluster,
                    dynamic_shared_bytes: if stages == 0 {
                        0
                    } else {
                        Ring::of((step.kernel, problem, step.config)).bytes(stages) as u32
                    },
                    ..LaunchSettings::new(blocks, step.block_threads())
                };
                let kernel = kernel_of(step, problems);
                // SAFETY: the arrays are longer than the scan, and the kernels are compiled for this executor.
                unsafe { launch(kernel, &step.config.to_abi(stages), &step.launch(&addresses), &settings) }
                    .unwrap_or_else(|error| panic!("{case}: {error}"));
            }
            let stored: Vec<u8> =
                expected.iter().flat_map(|value| value.to_le_bytes()[..output_bytes].to_vec()).collect();
            let output: Vec<u8> = memory.output().iter().flat_map(|word| word.to_le_bytes()).collect();
            let (before, rest) = output.split_at(output_offset * output_bytes);
            assert!(rest[..stored.len()] == stored, "{case}");
            assert!(before.iter().chain(&rest[stored.len()..]).all(|&byte| byte == 0), "{case}: beside the output");
        }
    }
}

#[test]
fn what_is_loaded_scanned_published_and_stored_may_be_four_types() {
    use ElementType::{U8, U16, U32, U64};
    let sums_of = |state, input, published, output| {
        let sum = Instance::new(state, Operator::Sum).expect("numbers have sums");
        Problem::converting(sum, input, published, output).expect("they are numbers")
    };
    let problems @ [widening, four_types] = [sums_of(U32, U8, U32, U32), sums_of(U64, U8, U32, U16)];
    for strategy in [Strategy::Sequential, Strategy::ReduceThenScan, Strategy::Lookback, Strategy::Lookahead] {
        scans_bytes(strategy, widening, problems);
    }
    for strategy in [Strategy::Lookback, Strategy::Lookahead, Strategy::SingleCluster] {
        scans_bytes(strategy, four_types, problems);
    }
}

#[test]
fn a_strategy_that_works_in_its_output_and_a_scan_in_place_take_one_type() {
    let sum = Instance::new(ElementType::U32, Operator::Sum).expect("numbers have sums");
    let widening = Problem::converting(sum, ElementType::U8, ElementType::U32, ElementType::U32).expect("numbers");
    let plain = ScanRequest::aligned(sum, Strategy::Lookback, Mode::Inclusive, ScanConfig::default(), 1000);
    let asked = ScanRequest { problem: widening, ..plain };
    let in_place = Plan::new(&ScanRequest { in_place: true, ..asked });
    assert!(matches!(in_place, Err(ConfigError::InPlace { .. })), "{in_place:?}");
    for &strategy in Strategy::ALL {
        assert!(Plan::new(&ScanRequest { strategy, in_place: true, ..plain }).is_ok());
        let plan = Plan::new(&ScanRequest { strategy, ..asked });
        let is_refused = matches!(plan, Err(ConfigError::WorksInOutput { .. }));
        assert_eq!(is_refused, strategy.row().shape.works_in_output, "{strategy}");
        assert!(is_refused || plan.is_ok(), "{strategy}");
    }
}
