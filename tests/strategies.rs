//! The strategies on the CPU device: every choice gives the reference, moves what the textbook says, and
//! keeps its descriptors right across launches.

#![cfg(all(feature = "cpu", feature = "lab"))]

mod common;

use common::{instance, intervals, sums_of_u32};
use lookback::abi;
use lookback::cpu::{BlockOrder, ExecutionError, Schedule};
use lookback::element::{ElementType, Instance, Operator};
use lookback::lab::cpu_device::{CpuDevice, CpuSettings};
use lookback::lab::dataset::Dataset;
use lookback::lab::device::{Counters, Device, DeviceError, RunSettings};
use lookback::strategy::plan::{Plan, RegionKey, ScanRequest};
use lookback::strategy::{
    Alignment, Blocks, Composition, ConfigError, Descriptor, Mode, Pattern, ScanConfig, Strategy, TileOrder,
};
use proptest::prelude::*;
use proptest::sample::select;

fn request(instance: Instance, strategy: Strategy, mode: Mode, config: ScanConfig, n: u64) -> ScanRequest {
    ScanRequest::aligned(instance, strategy, mode, config, n)
}

fn small_tile(vt: u32) -> ScanConfig {
    ScanConfig { vt, block_threads: 32, ..ScanConfig::default() }
}

/// Runs `request` on a random dataset and says what went wrong, if anything did.
fn run(device: &mut CpuDevice, request: &ScanRequest, seed: u64) -> Result<Counters, String> {
    let dataset = Dataset::random(request.instance(), request.n, seed);
    device.load(&dataset).map_err(|error| error.to_string())?;
    let outcome =
        device.run(request, &RunSettings { seed, ..RunSettings::default() }).map_err(|error| error.to_string())?;
    match outcome.verification.first_mismatch {
        None if outcome.verification.passed() => outcome.counters.ok_or_else(|| "no counters".to_owned()),
        first => Err(format!("{} wrong elements, the first at {first:?}", outcome.verification.mismatches)),
    }
}

fn checking_device() -> CpuDevice {
    CpuDevice::new(CpuSettings { check_bounds: true, ..CpuSettings::default() })
}

/// Sizes where something changes: none, one, around warps, around multiples of the tile.
fn sizes(tile: u64, most: u64) -> impl Strategy_<Value = u64> {
    prop_oneof![
        Just(0),
        1..4_u64,
        (1..5_u64, -2..3_i64).prop_map(|(warps, off)| (warps * 32).saturating_add_signed(off)),
        (1..7_u64, -17..18_i64).prop_map(move |(tiles, off)| (tiles * tile).saturating_add_signed(off)),
        0..2000_u64,
    ]
    .prop_map(move |n| n.min(most))
}

// proptest's trait has the name of the type that this file is about.
use proptest::strategy::Strategy as Strategy_;

fn configs() -> impl Strategy_<Value = ScanConfig> {
    let pattern_and_composition =
        (select(Pattern::ALL), select(Composition::ALL)).prop_map(|(pattern, composition)| {
            match (pattern, composition) {
                (Pattern::Shuffle, Composition::Block) => (Pattern::BrentKung, Composition::Block),
                other => other,
            }
        });
    (1..=64_u32, select(vec![32_u32, 64, 96, 160, 256]), pattern_and_composition, any::<bool>()).prop_map(
        |(vt, block_threads, (pattern, composition), split)| ScanConfig {
            vt,
            block_threads,
            pattern,
            composition,
            descriptor: split.then_some(Descriptor::Split),
            tile_order: TileOrder::Ticket,
        },
    )
}

fn requests() -> impl Strategy_<Value = ScanRequest> {
    // Those that are compiled on demand take seconds a kernel: `tests/host_scanner.rs` has a few.
    let instances: Vec<Instance> = Instance::all().filter(|instance| instance.is_built_in()).collect();
    (select(Strategy::ALL), select(instances), select(Mode::ALL), configs(), any::<bool>(), 0..32_u32, 0..32_u32)
        .prop_flat_map(|(strategy, instance, mode, config, in_place, input, output)| {
            let subtractable = instance.element().is_integer() && instance.operator() == Operator::Sum;
            let mode = if mode == Mode::InclusiveMinusInput && !subtractable { Mode::Exclusive } else { mode };
            let bytes = instance.element().bytes() as u32;
            let input_offset = input / bytes * bytes;
            let output_offset = if in_place { input_offset } else { output / bytes * bytes };
            let most = if strategy == Strategy::Naive { 1500 } else { 40_000 };
            sizes(u64::from(config.vt) * u64::from(config.block_threads), most).prop_map(move |n| ScanRequest {
                in_place,
                input_offset,
                output_offset,
                ..request(instance, strategy, mode, config, n)
            })
        })
}

fn cpu_settings() -> impl Strategy_<Value = CpuSettings> {
    let order = select(vec![BlockOrder::InOrder, BlockOrder::Reverse, BlockOrder::Random]);
    let schedule = prop_oneof![Just(Schedule::Fair), (0.0..0.5).prop_map(|preemption| Schedule::Random { preemption })];
    (1..6_u32, order, schedule, any::<bool>()).prop_map(|(resident_blocks, block_order, schedule, check_bounds)| {
        CpuSettings { resident_blocks, block_order, schedule, check_bounds, ..CpuSettings::default() }
    })
}

/// The strategies whose tiles meet through descriptors.
fn with_descriptors() -> impl Iterator<Item = Strategy> {
    Strategy::ALL.iter().copied().filter(|strategy| strategy.is_single_pass())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_choice_gives_the_reference(request in requests(), settings in cpu_settings(), seed in any::<u64>()) {
        let mut device = CpuDevice::new(settings);
        run(&mut device, &request, seed).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn a_workspace_serves_one_launch_after_another(
        launches in prop::collection::vec((configs(), 1..4000_u64, select(with_descriptors().collect::<Vec<_>>())), 2..6),
        instance in select(Instance::all().filter(|instance| instance.is_built_in()).collect::<Vec<_>>()),
        settings in cpu_settings(),
        seed in any::<u64>(),
    ) {
        // Stale descriptors of larger, smaller and differently laid out launches must stay invalid.
        let mut device = CpuDevice::new(settings);
        for (config, n, strategy) in launches {
            let request = request(instance, strategy, Mode::Inclusive, config, n);
            run(&mut device, &request, seed)
                .map_err(|fault| TestCaseError::fail(format!("{request:?}: {fault}")))?;
        }
    }
}

/// The strategies that divide the array into tiles.
fn tiled() -> impl Iterator<Item = Strategy> {
    Strategy::ALL.iter().copied().filter(|strategy| strategy.has_tiles())
}

/// Small launches of several warps, for schedules that switch between plain accesses.
fn small_requests() -> impl Strategy_<Value = ScanRequest> {
    let instances = [intervals(), sums_of_u32(), instance(ElementType::U8, Operator::Sum)];
    (
        select(tiled().collect::<Vec<_>>()),
        select(instances.to_vec()),
        configs(),
        1..5_u32,
        select(vec![1_u32, 2, 4, 8]),
        0..4_u32,
    )
        .prop_flat_map(|(strategy, instance, config, warps, vt, offset)| {
            let config = ScanConfig { vt, block_threads: 32 * warps, ..config };
            let output_offset = offset * instance.element().bytes() as u32 % 16;
            (1..=4 * u64::from(vt * config.block_threads)).prop_map(move |n| ScanRequest {
                output_offset,
                ..request(instance, strategy, Mode::Inclusive, config, n)
            })
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_switch_between_two_accesses_changes_the_result(
        request in small_requests(),
        resident_blocks in 1..5_u32,
        preemption in select(vec![0.01, 0.1, 0.5, 1.0]),
        seed in any::<u64>(),
    ) {
        let schedule = Schedule::Random { preemption };
        let mut device = CpuDevice::new(CpuSettings {
            resident_blocks, block_order: BlockOrder::Random, schedule, plain_points: true, check_bounds: false,
        });
        run(&mut device, &request, seed).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn no_schedule_of_the_protocol_changes_the_result() {
    // Many small tiles in flight and a switch at about every access of a descriptor: whoever reads a value
    // and its tag apart, or one in place of the other, gets a wrong sum. The data differ by launch, so a
    // descriptor of the launch before shows.
    let bicyclic = instance(ElementType::BicyclicPair, Operator::Bicyclic);
    let affine = instance(ElementType::AffineMap, Operator::Affine);
    let layouts = [
        (sums_of_u32(), Descriptor::Packed64),
        (sums_of_u32(), Descriptor::Packed128),
        (sums_of_u32(), Descriptor::Split),
        (bicyclic, Descriptor::Packed128),
        (bicyclic, Descriptor::Split),
        // Two words a descriptor.
        (affine, Descriptor::Packed128),
        (affine, Descriptor::Split),
    ];
    for (instance, layout) in layouts {
        let config = ScanConfig { descriptor: Some(layout), ..small_tile(1) };
        let mut device = CpuDevice::new(CpuSettings::default());
        let mut further_windows = 0;
        for seed in 0..80 {
            device.configure(CpuSettings {
                // Up to three windows of tiles without a prefix.
                resident_blocks: [2, 5, 40, 100][seed as usize / 4 % 4],
                block_order: BlockOrder::Random,
                schedule: Schedule::Random { preemption: [0.05, 0.3, 0.7, 1.0][seed as usize % 4] },
                ..CpuSettings::default()
            });
            let strategy = match seed % 5 {
                0 => Strategy::Chained,
                1 => Strategy::Lookahead,
                _ => Strategy::Lookback,
            };
            // 2 to 119 tiles.
            let request = request(instance, strategy, Mode::Inclusive, config, 32 * (2 + seed * 37 % 118));
            let counters =
                run(&mut device, &request, seed).unwrap_or_else(|fault| panic!("{request:?}, seed {seed}: {fault}"));
            further_windows += counters.lookback_rounds - counters.lookback_tiles;
        }
        assert!(further_windows > 0, "{instance}, {layout}: no tile met a whole window of aggregates");
    }
}

#[test]
fn one_wave_reads_every_tile_before_it_in_order_whoever_is_resident() {
    // 256 tiles are read in one round: here are less, as many, one more, and two rounds and a bit.
    let bicyclic = instance(ElementType::BicyclicPair, Operator::Bicyclic);
    let affine = instance(ElementType::AffineMap, Operator::Affine);
    for (instance, layout) in [
        (sums_of_u32(), Descriptor::Packed64),
        (bicyclic, Descriptor::Packed128),
        (intervals(), Descriptor::Split),
        (affine, Descriptor::Packed128),
        (affine, Descriptor::Split),
    ] {
        let config = ScanConfig { descriptor: Some(layout), ..small_tile(1) };
        let mut device = CpuDevice::new(CpuSettings::default());
        for (seed, tiles) in [1, 2, 33, 255, 256, 257, 258, 520].into_iter().enumerate() {
            for resident_blocks in [1, 3, 60] {
                device.configure(CpuSettings {
                    resident_blocks,
                    block_order: [BlockOrder::Reverse, BlockOrder::Random][seed % 2],
                    schedule: Schedule::Random { preemption: [0.05, 0.5][seed % 2] },
                    ..CpuSettings::default()
                });
                let request = request(instance, Strategy::OneWave, Mode::Inclusive, config, 32 * tiles);
                let counters = run(&mut device, &request, seed as u64)
                    .unwrap_or_else(|fault| panic!("{request:?}, {resident_blocks} resident: {fault}"));
                assert_eq!(counters.lookback_distance, tiles * (tiles - 1) / 2, "every aggregate before it");
                assert_eq!(counters.lookback_tiles, tiles - 1);
            }
        }
    }
}

#[test]
fn single_block_meets_once_a_tile_and_takes_what_is_suggested_in_one_tile() {
    let built_in = ElementType::NUMBERS.iter().filter(|&&element| instance(element, Operator::Max).is_built_in());
    for &element in built_in {
        let bytes = element.bytes() as u64;
        // The block of bytes ends at 16 KiB: longer threads would hold more values than registers.
        let one_tile = match bytes {
            1 => 1 << 14,
            2 => 1 << 15,
            _ => 1 << 16,
        };
        for array_bytes in (4..=17).map(|power| 1_u64 << power) {
            let n = array_bytes / bytes;
            let config = ScanConfig::suggested(Strategy::SingleBlock, bytes as usize, n);
            let request = request(instance(element, Operator::Max), Strategy::SingleBlock, Mode::Inclusive, config, n);
            let plan = Plan::new(&request).expect("the suggestion can be launched");
            assert_eq!((plan.steps.len(), plan.descriptors, plan.scratch_bytes, plan.access_bytes), (1, 0, 0, 16));
            assert_eq!(plan.steps[0].grid_blocks, 1);
            assert_eq!(plan.steps[0].tiles, array_bytes.div_ceil(one_tile), "{element}, {array_bytes} bytes");
            let counters =
                run(&mut checking_device(), &request, n).unwrap_or_else(|fault| panic!("{request:?}: {fault}"));
            assert_eq!((counters.launches, counters.barriers), (1, plan.steps[0].tiles), "{element}, {n}");
        }
    }
}

#[test]
fn single_cluster_is_one_launch_of_8_to_16_blocks() {
    let built_in = ElementType::NUMBERS.iter().filter(|&&element| instance(element, Operator::Max).is_built_in());
    for &element in built_in {
        let bytes = element.bytes() as u64;
        for array_bytes in (15..=20).map(|power| 1_u64 << power) {
            let n = array_bytes / bytes;
            let config = ScanConfig::suggested(Strategy::SingleCluster, bytes as usize, n);
            let request =
                request(instance(element, Operator::Max), Strategy::SingleCluster, Mode::Inclusive, config, n);
            let plan = Plan::new(&request).expect("the suggestion can be launched");
            assert_eq!((plan.steps.len(), plan.descriptors, plan.scratch_bytes, plan.access_bytes), (1, 0, 0, 16));
            let step = &plan.steps[0];
            let most = if bytes < 4 { 64 } else { 16 };
            assert!((8..=most).contains(&step.tiles), "{element}, {array_bytes} bytes: {} tiles", step.tiles);
            assert!(step.tiles <= 16 || array_bytes > 1 << 18, "{element}, {array_bytes} bytes: {} tiles", step.tiles);
            assert_eq!(step.grid_blocks, step.tiles.min(16));
        }
    }
}

#[test]
fn single_cluster_is_right_round_every_boundary_of_a_round() {
    // Seeds 0 to 3 take clusters of 16, 8, 16 and 5 blocks.
    let mut device = CpuDevice::new(CpuSettings {
        resident_blocks: 1,
        schedule: Schedule::Random { preemption: 0.05 },
        check_bounds: true,
        ..CpuSettings::default()
    });
    for instance in
        [intervals(), instance(ElementType::AffineMap, Operator::Affine), instance(ElementType::U8, Operator::Sum)]
    {
        let config = small_tile(2);
        let bytes = instance.element().bytes() as u32;
        for tiles in [1, 2, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 49] {
            for (seed, off) in [(0, -1), (1, 0), (2, 1), (3, 0), (3, 1)] {
                let n = (tiles * 64_u64).saturating_add_signed(off);
                for (mode, input_offset) in [(Mode::Inclusive, 0), (Mode::Exclusive, 16 - bytes)] {
                    let request =
                        ScanRequest { input_offset, ..request(instance, Strategy::SingleCluster, mode, config, n) };
                    run(&mut device, &request, seed)
                        .unwrap_or_else(|fault| panic!("{request:?}, seed {seed}: {fault}"));
                }
            }
        }
    }
}

#[test]
fn float_sums_in_a_fixed_order_are_the_same_to_the_bit_whoever_runs_when() {
    let sums = instance(ElementType::F32, Operator::Sum);
    let n = 32 * 300 + 5;
    let dataset = Dataset::random(sums, n, 4);
    let mut device = CpuDevice::new(CpuSettings::default());
    for &strategy in Strategy::ALL.iter().filter(|strategy| strategy.row().has_fixed_order) {
        let request =
            request(sums, strategy, Mode::Inclusive, small_tile(1), if strategy == Strategy::Naive { 700 } else { n });
        let bytes = request.n as usize * 4;
        let mut first: Option<Vec<u8>> = None;
        for seed in 0..6 {
            device.configure(CpuSettings {
                resident_blocks: [1, 3, 40][seed as usize % 3],
                block_order: [BlockOrder::Random, BlockOrder::Reverse][seed as usize % 2],
                schedule: Schedule::Random { preemption: 0.3 },
                ..CpuSettings::default()
            });
            let mut output = vec![0; bytes];
            device
                .scan(&request, &dataset.input[..bytes], &mut output, seed)
                .unwrap_or_else(|error| panic!("{strategy}: {error}"));
            assert!(first.get_or_insert_with(|| output.clone()) == &output, "{strategy}, seed {seed}");
        }
    }
}

#[test]
fn every_bit_of_the_epoch_counts() {
    for layout in [Descriptor::Packed64, Descriptor::Packed128, Descriptor::Split] {
        let config = ScanConfig { descriptor: Some(layout), ..small_tile(1) };
        let request = request(sums_of_u32(), Strategy::Lookback, Mode::Inclusive, config, 1000);
        // Blocks that run apart, or nobody reads a descriptor before it is written.
        let mut device = CpuDevice::new(CpuSettings {
            resident_blocks: 40,
            block_order: BlockOrder::Random,
            schedule: Schedule::Random { preemption: 0.5 },
            ..CpuSettings::default()
        });
        for bit in 1..=abi::LOOKBACK_MAXIMUM_EPOCH.ilog2() {
            // Epoch 1, then one that differs from it in one bit.
            for (seed, completed) in [(1, 0), (2, 1 << bit)] {
                device.set_completed_epochs(completed);
                run(&mut device, &request, seed).unwrap_or_else(|fault| panic!("{layout}, bit {bit}: {fault}"));
            }
        }
    }
}

#[test]
fn there_are_as_many_tiles_as_the_array_needs() {
    let config = small_tile(4);
    for strategy in tiled().filter(|strategy| strategy.row().shape.blocks == Blocks::PerTile) {
        for (n, input_offset, tiles) in
            [(1, 0, 1), (128, 0, 1), (129, 0, 2), (256, 0, 2), (125, 12, 1), (126, 12, 2), (253, 12, 2), (254, 12, 3)]
        {
            let request = ScanRequest { input_offset, ..request(sums_of_u32(), strategy, Mode::Inclusive, config, n) };
            let plan = Plan::new(&request).expect("the configuration is fine");
            assert_eq!(plan.steps[0].grid_blocks, tiles, "{strategy}, {n} elements from byte {input_offset}");
            run(&mut checking_device(), &request, n).unwrap_or_else(|fault| panic!("{request:?}: {fault}"));
        }
    }
}

/// The lead of a look-ahead scan reaches back to 16 bytes of the input, and to where rows begin with whole sectors of the
/// output.
#[test]
fn rows_of_lookahead_begin_with_whole_sectors() {
    for element in ElementType::NUMBERS.iter().copied() {
        let bytes = element.bytes() as u32;
        for input_offset in (0..ScanRequest::OFFSETS).step_by(bytes as usize) {
            for output_offset in (0..ScanRequest::OFFSETS).step_by(bytes as usize) {
                for in_place in [false, true] {
                    let config = ScanConfig { vt: 16, block_threads: 64, ..ScanConfig::default() };
                    let request = ScanRequest {
                        input_offset,
                        output_offset: if in_place { input_offset } else { output_offset },
                        in_place,
                        ..request(instance(element, Operator::Sum), Strategy::Lookahead, Mode::Inclusive, config, 3000)
                    };
                    let plan = Plan::new(&request).expect("the configuration is fine");
                    let lead = plan.steps[0].lead * bytes;
                    assert!(lead < 48 && (input_offset + 48 - lead).is_multiple_of(16), "{request:?}: {lead}");
                    // With the first boundary of 16 bytes of the output; what values of 4 bytes skip before is not theirs.
                    let tile = request.output_offset + 64 - lead;
                    let row = tile.next_multiple_of(16);
                    assert!(row.is_multiple_of(32), "{request:?}: {lead}");
                    assert!(bytes != 4 || lead >= row - tile, "{request:?}: {lead}");
                    // The smallest tile of all has an element of the array then.
                    assert!(lead / bytes < 32, "{request:?}: {lead}");
                }
            }
        }
    }
}

#[test]
fn every_size_up_to_three_tiles_is_right() {
    let mut device = checking_device();
    for instance in [intervals(), instance(ElementType::U8, Operator::Sum)] {
        let config = small_tile(if instance == intervals() { 2 } else { 4 });
        let tile = u64::from(config.vt * config.block_threads);
        for &strategy in Strategy::ALL {
            for mode in [Mode::Inclusive, Mode::Exclusive] {
                for in_place in [false, true] {
                    for n in 0..=3 * tile {
                        let request = ScanRequest { in_place, ..request(instance, strategy, mode, config, n) };
                        run(&mut device, &request, n).unwrap_or_else(|fault| panic!("{request:?}: {fault}"));
                    }
                }
            }
        }
    }
}

#[test]
fn every_alignment_of_input_and_output_is_right() {
    let mut device = checking_device();
    for &element in ElementType::NUMBERS {
        let bytes = element.bytes() as u32;
        for strategy in tiled() {
            // Look-ahead looks at sectors of 32 bytes, the others at the 16 of an access.
            let offsets = if strategy == Strategy::Lookahead { ScanRequest::OFFSETS } else { 16 };
            for input_offset in (0..offsets).step_by(bytes as usize) {
                for output_offset in (0..offsets).step_by(bytes as usize) {
                    let config = ScanConfig { vt: 16, block_threads: 64, ..ScanConfig::default() };
                    let request = ScanRequest {
                        input_offset,
                        output_offset,
                        ..request(instance(element, Operator::Sum), strategy, Mode::Inclusive, config, 3000)
                    };
                    run(&mut device, &request, 7).unwrap_or_else(|fault| panic!("{request:?}: {fault}"));
                }
            }
        }
    }
}

#[test]
fn every_vt_works_without_a_rebuild() {
    let mut device = checking_device();
    for vt in 1..=abi::LOOKBACK_MAXIMUM_VT {
        for instance in [sums_of_u32(), instance(ElementType::F64, Operator::Sum), intervals()] {
            for strategy in tiled() {
                let config = ScanConfig { vt, block_threads: 64, ..ScanConfig::default() };
                let n = 5 * 64 * u64::from(vt) + 13;
                run(&mut device, &request(instance, strategy, Mode::Inclusive, config, n), 3)
                    .unwrap_or_else(|fault| panic!("{instance}, {strategy}, VT {vt}: {fault}"));
            }
        }
    }
}

#[test]
fn strategies_move_what_the_textbook_says() {
    let n = 10_007_u64;
    let levels = u64::from(n.next_power_of_two().trailing_zeros());
    let config = ScanConfig { vt: 4, block_threads: 64, ..ScanConfig::default() };
    let tiles = n.div_ceil(256);
    for (strategy, moves) in [
        (Strategy::Sequential, 2 * n),
        (Strategy::Naive, n * (n + 1) / 2 + n),
        (Strategy::HillisSteele, 3 * n * levels - ((1 << levels) - 1)),
        (Strategy::ScanThenPropagate, 4 * n),
        (Strategy::ReduceThenScan, 3 * n),
        (Strategy::Chained, 2 * n),
        (Strategy::Lookback, 2 * n),
        (Strategy::SingleBlock, 2 * n),
        (Strategy::OneWave, 2 * n),
        (Strategy::Lookahead, 2 * n),
        (Strategy::SingleCluster, 2 * n),
    ] {
        let mut device = checking_device();
        let request = request(sums_of_u32(), strategy, Mode::Inclusive, config, n);
        let counters = run(&mut device, &request, 1).unwrap_or_else(|fault| panic!("{strategy}: {fault}"));
        assert_eq!(counters.element_reads + counters.element_writes, moves, "{strategy}");
        match strategy {
            Strategy::Lookback => {
                // Ticket, epoch, aggregate, prefix, counter, and at least one read for each tile but the first.
                assert!(counters.protocol_accesses >= 6 * tiles - 2, "{counters:?}");
                assert_eq!(counters.lookback_tiles, tiles - 1);
                assert_eq!(counters.launches, 1);
            }
            Strategy::Chained => assert_eq!(counters.launches, 1),
            Strategy::SingleBlock => {
                assert_eq!((counters.launches, counters.barriers, counters.protocol_accesses), (1, tiles, 0));
            }
            Strategy::SingleCluster => {
                // Seed 1 takes clusters of 8: a barrier of each block a round for its warps, one with the others at the
                // start, and one between two rounds.
                let rounds = tiles.div_ceil(8);
                assert_eq!((counters.launches, counters.protocol_accesses), (1, 0));
                assert_eq!(counters.barriers, 8 * 2 * rounds);
            }
            Strategy::OneWave => {
                // Ticket, epoch, aggregate and counter of each tile, each aggregate at least once by each tile
                // behind it, and what the last block resets.
                assert!(counters.protocol_accesses >= 4 * tiles + tiles * (tiles - 1) / 2 + 3, "{counters:?}");
                assert_eq!(counters.lookback_distance, tiles * (tiles - 1) / 2);
                assert_eq!(counters.launches, 1);
            }
            Strategy::Lookahead => {
                // Ticket, aggregate, and at least one read for each tile but the first.
                assert!(counters.protocol_accesses >= 3 * tiles - 1, "{counters:?}");
                assert_eq!(counters.lookback_tiles, tiles - 1);
                assert_eq!(counters.launches, 1);
            }
            Strategy::HillisSteele => assert_eq!(counters.launches, levels),
            // Upsweep, spine of one tile, downsweep.
            Strategy::ReduceThenScan | Strategy::ScanThenPropagate => {
                assert_eq!(counters.launches, 3);
                // Written, scanned (the last one unread), and read by all threads of its tile.
                assert_eq!(counters.spine_moves, tiles + (2 * tiles - 1) + 64 * tiles);
                assert_eq!(counters.protocol_accesses, 0);
            }
            _ => assert_eq!(counters.protocol_accesses, 0),
        }
    }
}

/// Each lane moves 16 bytes an access wherever input and output begin, but for the ends of the array and, where the
/// output lies otherwise than the input, the two ends of what a warp stores: less than a vector each.
#[test]
fn accesses_are_as_wide_as_can_be_at_any_alignment() {
    for element in [ElementType::U8, ElementType::U16, ElementType::I32, ElementType::F64] {
        let bytes = element.bytes() as u32;
        let width = 16 / bytes;
        // Four vectors a lane, two warps a block, five tiles and a bit.
        let config = ScanConfig { vt: 4 * width, block_threads: 64, ..ScanConfig::default() };
        let tile = u64::from(config.vt * config.block_threads);
        let n = 5 * tile + u64::from(width) + 1;
        for strategy in tiled().filter(|strategy| strategy.row().shape.kernels.len() == 1) {
            for (input, output) in [(0, 0), (1, 1), (1, 0), (0, 1), (1, width - 1), (0, width), (1, width + 1)] {
                let sum = instance(element, Operator::Sum);
                let request = ScanRequest {
                    input_offset: input * bytes,
                    output_offset: output * bytes,
                    ..request(sum, strategy, Mode::Inclusive, config, n)
                };
                let counters = run(&mut checking_device(), &request, 1)
                    .unwrap_or_else(|fault| panic!("{strategy}, {element}, {input}, {output}: {fault}"));
                let moves = counters.element_reads + counters.element_writes;
                // Where look-ahead joins vectors as they come, each tile but the last goes on for one of the next.
                let is_realigned_on_load = strategy == Strategy::Lookahead && bytes == 4 && input % 4 != output % 4;
                let vectors_twice = |tiles: u64| if is_realigned_on_load { tiles * u64::from(width) } else { 0 };
                let allowed = 2 * n + vectors_twice(n / tile - 1)..=2 * n + vectors_twice(n.div_ceil(tile));
                assert!(allowed.contains(&moves), "{strategy}, {element}, offsets {input}, {output}: {moves}");
                let vectors = n.div_ceil(u64::from(width));
                let loads = if strategy == Strategy::Lookahead { 0 } else { vectors };
                // Head and tail of the array, for input and output.
                let ends = 4 * u64::from(width);
                let is_shifted = input % width != output % width;
                let cuts =
                    if is_shifted && !is_realigned_on_load { 2 * u64::from(width) * (n.div_ceil(tile) * 2) } else { 0 };
                let most = loads + vectors + ends + cuts;
                assert!(
                    counters.element_accesses <= most,
                    "{strategy}, {element}, offsets {input}, {output}: {} accesses for at most {most}",
                    counters.element_accesses
                );
            }
        }
    }
}

#[test]
fn work_and_span_are_those_of_the_algorithm() {
    let n = 4096;
    let config = ScanConfig { vt: 1, block_threads: 64, ..ScanConfig::default() };
    let count = |strategy| {
        run(&mut checking_device(), &request(sums_of_u32(), strategy, Mode::Inclusive, config, n), 1)
            .unwrap_or_else(|fault| panic!("{strategy}: {fault}"))
    };
    let sequential = count(Strategy::Sequential);
    assert_eq!((sequential.operator_applications, sequential.span_steps), (n, n));
    // Hillis-Steele: n·L − (2^L − 1) operators in L steps.
    let hillis_steele = count(Strategy::HillisSteele);
    assert_eq!((hillis_steele.operator_applications, hillis_steele.span_steps), (n * 12 - (n - 1), 12));
    // Blelloch: a tree up (the root is never needed) and down, one more operator an element at the end.
    let blelloch = count(Strategy::Blelloch);
    assert!(blelloch.operator_applications < 3 * n && blelloch.span_steps <= 2 * 12 + 1, "{blelloch:?}");
    let chained = count(Strategy::Chained);
    assert!(chained.span_steps >= n / 64, "the chain has a step a tile: {chained:?}");
}

#[test]
fn an_exclusive_scan_does_without_the_last_input() {
    // The device gives the kernels n - 1 elements and checks every access.
    let mut device = checking_device();
    for &strategy in Strategy::ALL {
        for n in [1, 2, 63, 64, 65, 127, 128, 129, 1000] {
            let request = request(intervals(), strategy, Mode::Exclusive, small_tile(2), n);
            let dataset = Dataset::random(intervals(), n, 9);
            let bytes = intervals().element().bytes();
            let shorter = &dataset.input[..dataset.input.len() - bytes];
            let mut output = vec![0; dataset.input.len()];
            device.scan(&request, shorter, &mut output, 9).unwrap_or_else(|error| panic!("{strategy}, {n}: {error}"));
            assert_eq!(Some(output), dataset.expected_output(Mode::Exclusive), "{strategy}, {n}");
        }
    }
}

#[test]
fn descriptors_survive_the_wrap_of_the_epoch() {
    let layouts = [
        (sums_of_u32(), Descriptor::Packed64),
        (sums_of_u32(), Descriptor::Packed128),
        (sums_of_u32(), Descriptor::Split),
        (intervals(), Descriptor::Packed128),
        (intervals(), Descriptor::Split),
        (instance(ElementType::AffineMap, Operator::Affine), Descriptor::Packed128),
        (instance(ElementType::AffineMap, Operator::Affine), Descriptor::Split),
    ];
    for (instance, layout) in layouts {
        for strategy in with_descriptors() {
            // Blocks that run apart, or nobody reads a descriptor before it is written.
            let mut device = CpuDevice::new(CpuSettings {
                resident_blocks: 40,
                block_order: BlockOrder::Random,
                schedule: Schedule::Random { preemption: 0.5 },
                check_bounds: true,
                ..CpuSettings::default()
            });
            let config = ScanConfig { descriptor: Some(layout), ..small_tile(2) };
            let large = request(instance, strategy, Mode::Inclusive, config, 2000);
            // Descriptors of epoch 1, which the first launch behind the wrap must not take for its own (a
            // second one here or there would overwrite them); the small launch at the wrap leaves most of
            // them to the clean-up of the whole capacity.
            run(&mut device, &large, 0).unwrap_or_else(|fault| panic!("{instance}, {layout}: {fault}"));
            device.set_completed_epochs(abi::LOOKBACK_MAXIMUM_EPOCH - 2);
            let small = ScanRequest { n: 70, ..large };
            let key = RegionKey::of(&Plan::new(&large).expect("it is offered"));
            let completed = |device: &CpuDevice| device.completed_epochs(key);
            for (launch, expected) in [abi::LOOKBACK_MAXIMUM_EPOCH - 1, 0, 1, 2, 3].into_iter().enumerate() {
                let request = if launch < 2 { small } else { large };
                run(&mut device, &request, 10 + launch as u64)
                    .unwrap_or_else(|fault| panic!("{instance}, {layout}, launch {launch}: {fault}"));
                assert_eq!(completed(&device), Some(expected), "{instance}, {layout}, launch {launch}");
            }
        }
    }
}

#[test]
fn tickets_need_one_resident_block_and_static_ids_need_order() {
    let settings = CpuSettings { resident_blocks: 1, block_order: BlockOrder::Reverse, ..CpuSettings::default() };
    for strategy in [Strategy::Lookback, Strategy::OneWave] {
        let with_ticket = request(intervals(), strategy, Mode::Inclusive, small_tile(2), 1000);
        run(&mut CpuDevice::new(settings), &with_ticket, 5)
            .expect("tiles are taken in the order in which blocks start");

        let config = ScanConfig { tile_order: TileOrder::Static, ..small_tile(2) };
        let with_static_ids = ScanRequest { config, ..with_ticket };
        run(&mut checking_device(), &with_static_ids, 5).expect("blocks start in order");
        let mut device = CpuDevice::new(settings);
        device.load(&Dataset::random(intervals(), 1000, 5)).expect("the CPU device takes any dataset");
        let error = device.run(&with_static_ids, &RunSettings { seed: 5, ..RunSettings::default() });
        let Err(DeviceError::Execution(ExecutionError::LostProgress { parties, waiting_blocks })) = error else {
            panic!("{strategy}: the last tile waits for tiles that cannot start: {error:?}");
        };
        assert_eq!(waiting_blocks, 15);
        assert!(parties.iter().all(|party| party.block == 15), "{parties:?}");

        // The aborted launch left a ticket and descriptors behind; the next one must not trip over them.
        run(&mut device, &with_ticket, 6).expect("an aborted launch leaves nothing to the next one");
    }
    let ahead = request(intervals(), Strategy::Lookahead, Mode::Inclusive, small_tile(2), 1000);
    for seed in 0..8 {
        run(&mut CpuDevice::new(settings), &ahead, seed).expect("one block takes all tiles");
    }
    // Its blocks take tiles in turn: with static ids all of them would have to be there at once.
    let config = ScanConfig { tile_order: TileOrder::Static, ..small_tile(2) };
    assert!(matches!(Plan::new(&ScanRequest { config, ..ahead }), Err(ConfigError::StaticOrder("lookahead"))));
}

#[test]
fn sums_of_floats_ahead_are_the_same_bit_for_bit_whoever_takes_which_tile() {
    for element in [ElementType::F32, ElementType::F64] {
        let instance = instance(element, Operator::Sum);
        // Several groups of 32 tiles, more than are read at one time, and a cut one.
        let request = request(instance, Strategy::Lookahead, Mode::Inclusive, small_tile(4), 128 * 300 + 17);
        let dataset = Dataset::random(instance, request.n, 3);
        let scan = |settings, seed| {
            let mut output = vec![0; dataset.input.len()];
            CpuDevice::new(settings)
                .scan(&request, &dataset.input, &mut output, seed)
                .unwrap_or_else(|error| panic!("{instance}, seed {seed}: {error}"));
            output
        };
        let first = scan(CpuSettings { resident_blocks: 1, ..CpuSettings::default() }, 0);
        for seed in 1..12 {
            let settings = CpuSettings {
                resident_blocks: 1 + seed as u32 % 6,
                block_order: BlockOrder::Random,
                schedule: Schedule::Random { preemption: 0.1 },
                ..CpuSettings::default()
            };
            assert!(scan(settings, seed) == first, "{instance}, seed {seed}");
        }
    }
}

#[test]
fn one_seed_is_one_run_whatever_runs_beside_it() {
    let settings = CpuSettings { schedule: Schedule::Random { preemption: 0.3 }, ..CpuSettings::default() };
    let wanted = request(intervals(), Strategy::Lookback, Mode::Inclusive, small_tile(2), 3000);
    let alone = run(&mut CpuDevice::new(settings), &wanted, 11).expect("the scan is right");
    let together: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| run(&mut CpuDevice::new(settings), &wanted, 11))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic").expect("the scan is right")).collect()
    });
    assert!(together.iter().all(|counters| *counters == alone), "{together:?}, alone {alone:?}");
    let other = run(&mut CpuDevice::new(settings), &wanted, 12).expect("the scan is right");
    assert_ne!(other.spin_polls, alone.spin_polls, "another seed is another run");
}

#[test]
fn launches_that_cannot_be_are_errors_that_say_what_to_do() {
    let plan = |config, mode, instance| Plan::new(&request(instance, Strategy::Lookback, mode, config, 100));
    let good = ScanConfig::default();
    for vt in [0, 65, u32::MAX] {
        assert_eq!(plan(ScanConfig { vt, ..good }, Mode::Inclusive, sums_of_u32()), Err(ConfigError::Vt(vt)));
    }
    for block_threads in [0, 1, 31, 33, 1000, 1056] {
        let config = ScanConfig { block_threads, ..good };
        assert_eq!(plan(config, Mode::Inclusive, sums_of_u32()), Err(ConfigError::BlockThreads(block_threads)));
    }
    let across = ScanConfig { composition: Composition::Block, ..good };
    assert_eq!(plan(across, Mode::Inclusive, sums_of_u32()), Err(ConfigError::ShuffleAcrossBlock));
    let small = ScanConfig { descriptor: Some(Descriptor::Packed64), ..good };
    assert!(matches!(plan(small, Mode::Inclusive, intervals()), Err(ConfigError::DescriptorTooSmall { .. })));
    assert!(matches!(plan(good, Mode::InclusiveMinusInput, intervals()), Err(ConfigError::NoInverse(_))));
    let tiny = ScanConfig { vt: 1, block_threads: 32, ..good };
    let huge = request(sums_of_u32(), Strategy::Lookback, Mode::Inclusive, tiny, 1 << 40);
    assert!(matches!(Plan::new(&huge), Err(ConfigError::TooManyBlocks { .. })));
    let full = ScanConfig { vt: 1, block_threads: 960, ..good };
    let ahead = request(sums_of_u32(), Strategy::Lookahead, Mode::Inclusive, full, 100);
    assert_eq!(
        Plan::new(&ahead),
        Err(ConfigError::HelperThreads { strategy: "lookahead", block_threads: 960, added: 128 })
    );
    assert!(Instance::new(ElementType::F32, Operator::Xor).is_err());
    assert!(Instance::new(ElementType::U32, Operator::Affine).is_err());
}

#[test]
fn a_spine_of_a_spine_is_scanned_too() {
    for strategy in [Strategy::ReduceThenScan, Strategy::ScanThenPropagate] {
        let request = request(intervals(), strategy, Mode::Inclusive, small_tile(1), 40_000);
        let plan = Plan::new(&request).expect("the configuration is fine");
        // 40,000 elements, 1,250 tiles, 40 tiles of those, 2 tiles, 1.
        assert_eq!(plan.steps.iter().map(|step| step.level).max(), Some(3), "{strategy}");
        run(&mut checking_device(), &request, 2).unwrap_or_else(|fault| panic!("{strategy}: {fault}"));
    }
}

#[test]
fn kernels_choose_by_configuration_and_not_by_preprocessor() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("cuda");
    for folder in ["scan", "block", "warp"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("the folder is in the package") {
            let path = entry.expect("it can be read").path();
            let text = std::fs::read_to_string(&path).expect("kernels are text");
            assert!(!text.contains("#if"), "{} has an #if", path.display());
        }
    }
}

#[test]
fn arrays_at_vectors_have_kernels_of_their_own_where_blocks_run_once() {
    let sum = Instance::new(ElementType::U32, Operator::Sum).expect("u32 has a sum");
    for &strategy in Strategy::ALL {
        for (input_offset, output_offset, alignment) in
            [(0, 0, Alignment::Vectors), (16, 48, Alignment::Vectors), (4, 0, Alignment::Any), (0, 8, Alignment::Any)]
        {
            let aligned = request(sum, strategy, Mode::Inclusive, small_tile(4), 100);
            let plan = Plan::new(&ScanRequest { input_offset, output_offset, ..aligned }).expect("it can be launched");
            let is_apart = matches!(strategy.name(), "single-block" | "single-cluster" | "one-wave");
            let expected = if is_apart { alignment } else { Alignment::Any };
            assert_eq!(plan.steps[0].config.alignment, expected, "{strategy}, {input_offset}");
        }
    }
}
