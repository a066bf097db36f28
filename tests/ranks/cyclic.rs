//! Arrays that are dealt to ranks in chunks, against the same loop, under schedules of all kinds.

use super::{Map, SHORT, each, expected, in_process, is_skipped, length, maps};
use bytemuck::Zeroable as _;
use lookback::cpu::{BlockOrder, Schedule};
use lookback::element::{Definition, ElementType, Operator, Problem};
use lookback::lab::cpu_device::CpuSettings;
use lookback::lab::device::DeviceError;
use lookback::lab::host_scanner::HostScanner;
use lookback::ranks::{Deal, Group, Hand, Loss, RankError};
use lookback::run::AnyScanner;
use lookback::strategy::plan::{Plan, ScanRequest};
use lookback::strategy::{CallError, Composition, ConfigError, Mode, ScanConfig, Strategy};
use proptest::prelude::*;

/// What a rank has of an array.
fn dealt<T: Copy>(all: &[T], hand: Hand) -> Vec<T> {
    hand.chunks().flat_map(|chunk| &all[chunk.start as usize..chunk.end as usize]).copied().collect()
}

/// What ranks have, put together again.
fn gathered<T: Copy>(deal: Deal, zero: T, ranks: &[Vec<T>]) -> Vec<T> {
    let mut all = vec![zero; deal.n() as usize];
    for (rank, own) in ranks.iter().enumerate() {
        let hand = deal.hand(rank, ranks.len());
        assert_eq!(own.len() as u64, hand.elements());
        own.iter().enumerate().for_each(|(index, value)| all[hand.place(index as u64) as usize] = *value);
    }
    all
}

/// Every access is looked at.
fn settings(schedule: Schedule, block_order: BlockOrder) -> CpuSettings {
    CpuSettings { check_bounds: true, schedule, block_order, resident_blocks: 3, ..CpuSettings::default() }
}

/// The scan of what all ranks are dealt, put together: maps, and numbers of 2 bytes. `None` takes what suits the chunk.
fn scanned(
    x: &[u8],
    (size, chunk): (usize, u64),
    mode: Mode,
    settings: CpuSettings,
    config: Option<ScanConfig>,
) -> Option<(Vec<Map>, Vec<u16>)> {
    let deal = Deal::new(x.len() as u64, chunk).expect("chunks have elements");
    let ends = each(in_process(size), |ranks| {
        let mine = dealt(x, deal.hand(ranks.group().rank(), size));
        let (mut all, mut part) = (vec![Map::zeroed(); mine.len()], vec![0; mine.len()]);
        let mut scanner = HostScanner::new(settings);
        if let Some(config) = config {
            scanner = scanner.with_config(config);
        }
        ranks.scan_cyclic(scanner.run(maps()).input(&mine).output(&mut all).output(&mut part), mode, deal)?;
        ranks.finish()?;
        Ok((all, part))
    });
    if is_skipped(&ends) {
        return None;
    }
    let (all, parts): (Vec<_>, Vec<_>) = ends.into_iter().map(|end| end.expect("no rank fails")).unzip();
    Some((gathered(deal, Map::zeroed(), &all), gathered(deal, 0, &parts)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_dealt_is_scanned_as_one_array(
        (n, size, tiles) in (length(), 1..=4_usize, 1..=3_u64),
        (is_exclusive, is_random, is_backward) in (any::<bool>(), any::<bool>(), any::<bool>()),
        (vt, seed) in (prop_oneof![Just(1_u32), Just(2), Just(4)], any::<u8>()),
    ) {
        let x: Vec<u8> = (0..n).map(|i| (i as u8).wrapping_mul(37).wrapping_add(seed)).collect();
        let mode = if is_exclusive { Mode::Exclusive } else { Mode::Inclusive };
        let config = ScanConfig { vt, block_threads: 32, composition: Composition::ReduceThenScan, ..ScanConfig::default() };
        let schedule = if is_random { Schedule::Random { preemption: 0.1 } } else { Schedule::Fair };
        let order = if is_backward { BlockOrder::Reverse } else { BlockOrder::InOrder };
        let chunk = tiles * u64::from(32 * vt);
        if let Some((all, part)) = scanned(&x, (size, chunk), mode, settings(schedule, order), Some(config)) {
            let expected = expected(&x, mode);
            prop_assert_eq!(part, expected.iter().map(|state| state.addend as u16).collect::<Vec<_>>());
            prop_assert_eq!(all, expected);
        }
    }
}

/// Four ranks, what is suggested, and chunks of one tile.
#[test]
fn a_tile_is_found_for_chunks_of_any_multiple_of_a_warp() {
    let x: Vec<u8> = (0..3001).map(|i| (i % 251) as u8).collect();
    for chunk in [32, 96, 1024, 4096] {
        let Some((all, _)) = scanned(&x, (4, chunk), Mode::Inclusive, CpuSettings::default(), None) else { return };
        assert_eq!(all, expected(&x, Mode::Inclusive), "chunks of {chunk}");
    }
}

/// The bits of one device: the order of additions follows from places in the whole array.
#[test]
fn reproducible_sums_have_the_bits_of_one_device_for_any_number_of_ranks() {
    let n = 40_000;
    let x: Vec<f32> = (0..n).map(|i| ((i * 2_654_435_761_u64 % 1000) as f32 - 500.0) * 1.1e-3).collect();
    let sums = || {
        let sums = Definition::of_numbers(Operator::Sum, ElementType::F32, ElementType::F32).expect("numbers");
        sums.define().expect("a whole definition")
    };
    let mut alone = vec![0.0_f32; x.len()];
    let mut scanner = HostScanner::default().with_strategy(Strategy::Lookahead);
    let of_one = scanner.run(sums()).input(&x).output(&mut alone).reproducible().inclusive();
    if is_skipped(&[of_one]) {
        return;
    }
    // A tile of such sums has 6144 elements. The second is of shards: three ranks have one chunk each.
    for (size, chunk) in [(2, 6144), (3, 6144), (3, 3 * 6144)] {
        let deal = Deal::new(n, chunk).expect("chunks have elements");
        let ends = each(in_process(size), |ranks| {
            let mine = dealt(&x, deal.hand(ranks.group().rank(), size));
            let mut own = vec![0.0_f32; mine.len()];
            let mut scanner = HostScanner::default();
            let run = scanner.run(sums()).input(&mine).output(&mut own).reproducible();
            ranks.scan_cyclic(run, Mode::Inclusive, deal)?;
            Ok(own)
        });
        let ends: Vec<Vec<f32>> = ends.into_iter().map(|end| end.expect("no rank fails")).collect();
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&gathered(deal, 0.0, &ends)), bits(&alone), "{size} ranks, {chunk}");
    }
}

/// What a text is given beside arrays, every rank is given, and no kernel is compiled for another value.
#[test]
fn what_is_dealt_has_parameters_too() {
    let x: Vec<u32> = (0..5000).map(|i| i * 7919 % 1009).collect();
    let scaled = Definition::new::<u64>("scaled", "u64")
        .identity("0")
        .combine("return left + right;")
        .commutative()
        .parameter::<u32>("factor")
        .input::<u32>("x")
        .load("return static_cast<u64>(x) * factor;")
        .output::<u64>("y")
        .store("y = state;");
    let scaled = scaled.define().expect("a whole definition");
    let deal = Deal::new(x.len() as u64, 96).expect("chunks have elements");
    for factor in [3_u32, 1_000_000] {
        let ends = each(in_process(3), |ranks| {
            let mine = dealt(&x, deal.hand(ranks.group().rank(), 3));
            let mut own = vec![0_u64; mine.len()];
            let mut scanner = HostScanner::default();
            let run = scanner.run(scaled).parameter(factor).input(&mine).output(&mut own);
            ranks.scan_cyclic(run, Mode::Inclusive, deal)?;
            Ok(own)
        });
        if is_skipped(&ends) {
            return;
        }
        let ends: Vec<Vec<u64>> = ends.into_iter().map(|end| end.expect("no rank fails")).collect();
        let mut sum = 0;
        let expected = x.iter().map(|&x| {
            sum += u64::from(x) * u64::from(factor);
            sum
        });
        assert_eq!(gathered(deal, 0, &ends), expected.collect::<Vec<_>>(), "times {factor}");
    }
}

/// What one rank of two ends with that deals so.
fn refused(deal: Deal, own: usize, config: Option<ScanConfig>) -> DeviceError {
    let ends = each(in_process(2), |ranks| {
        let x = vec![1_u8; own];
        let (mut all, mut part) = (vec![Map::zeroed(); own], vec![0_u16; own]);
        let mut scanner = HostScanner::default();
        if let Some(config) = config {
            scanner = scanner.with_config(config);
        }
        ranks.scan_cyclic(scanner.run(maps()).input(&x).output(&mut all).output(&mut part), Mode::Inclusive, deal)
    });
    let is_own = |error: &DeviceError| !matches!(error, DeviceError::Ranks(_));
    ends.into_iter().filter_map(Result::err).find(is_own).expect("it is refused")
}

#[test]
fn what_is_not_dealt_so_is_refused() {
    let deal = |n, chunk| Deal::new(n, chunk).expect("chunks have elements");
    let error = refused(deal(128, 32), 65, None);
    assert!(
        matches!(&error, DeviceError::Config(ConfigError::Call(call)) if matches!(**call, CallError::Hand { elements: 65, expected: 64, .. })),
        "{error}"
    );
    let config = ScanConfig { vt: 4, block_threads: 64, ..ScanConfig::default() };
    let error = refused(deal(192, 96), 96, Some(config));
    assert!(matches!(error, DeviceError::Config(ConfigError::Chunk { chunk: 96, tile: 256 })), "{error}");
    assert!(error.to_string().contains("deal chunks of a multiple of 256 elements"), "{error}");
    let error = refused(deal(96, 48), 48, None);
    assert!(matches!(error, DeviceError::Config(ConfigError::Chunk { chunk: 48, tile: 32 })), "{error}");
    let numbers = Problem::accumulating(Operator::Sum, ElementType::U8, ElementType::U32).expect("numbers");
    for (problem, strategy) in [(maps().into(), Strategy::Lookback), (numbers, Strategy::Lookahead)] {
        let hand = Some(deal(192, 96).hand(0, 2));
        let request = ScanRequest::of(problem, strategy, Mode::Inclusive, config, 96);
        let error = Plan::new(&ScanRequest { hand, ..request }).expect_err("it deals nothing");
        assert!(matches!(error, ConfigError::NotDealt { .. }), "{error}");
    }
}

#[test]
fn scans_alone_are_dealt() {
    let deal = Deal::new(64, 32).expect("chunks have elements");
    let ends = each(in_process(2), |ranks| {
        let mut places = [0_u32; 32];
        let nonzero = Definition::nonzero_as::<u8, u32>().expect("numbers").define().expect("a definition");
        let mut scanner = HostScanner::default();
        ranks.scan_cyclic(scanner.run(nonzero).input(&[1_u8; 32]).output(&mut places), Mode::Inclusive, deal)
    });
    let is_told = |end: &Result<(), DeviceError>| matches!(end, Err(DeviceError::Config(ConfigError::Call(call))) if matches!(**call, CallError::DealtScansAlone(_)));
    assert!(ends.iter().any(is_told) && ends.iter().all(Result::is_err), "{ends:?}");
}

/// What one rank would write lies beside what the other one has.
#[test]
fn ranks_that_deal_otherwise_are_refused() {
    let ends = each(in_process(2), |ranks| {
        let n = if ranks.group().rank() == 0 { 64 } else { 1 << 12 };
        let deal = Deal::new(n, 32).expect("chunks have elements");
        let own = n as usize / 2;
        let x = vec![1_u8; own];
        let (mut all, mut part) = (vec![Map::zeroed(); own], vec![0_u16; own]);
        let mut scanner = HostScanner::default();
        ranks.scan_cyclic(scanner.run(maps()).input(&x).output(&mut all).output(&mut part), Mode::Inclusive, deal)
    });
    if !is_skipped(&ends) {
        assert!(matches!(ends[0], Err(DeviceError::Ranks(RankError::OtherDeal { rank: 1, this: 0 }))), "{:?}", ends[0]);
        let Err(DeviceError::Ranks(RankError::Lost { rank: 0, size: 2, loss: Loss::Failed(why) })) = &ends[1] else {
            panic!("{:?}", ends[1])
        };
        assert!(why.contains("rank 1 deals otherwise than rank 0"), "{why}");
    }
}

/// Whoever waits for a rank that does not come to the scan is told which.
#[test]
fn a_rank_that_does_not_deal_is_named() {
    let deal = Deal::new(64, 32).expect("chunks have elements");
    let ends = each(Group::in_process(2, SHORT).expect("a few ranks"), |ranks| {
        if ranks.group().rank() == 1 {
            std::thread::sleep(3 * SHORT);
            return Ok(());
        }
        let (mut all, mut part) = (vec![Map::zeroed(); 32], vec![0_u16; 32]);
        let mut scanner = HostScanner::default();
        ranks.scan_cyclic(
            scanner.run(maps()).input(&[1_u8; 32]).output(&mut all).output(&mut part),
            Mode::Inclusive,
            deal,
        )
    });
    assert!(
        matches!(&ends[0], Err(DeviceError::Ranks(RankError::Lost { rank: 1, size: 2, loss: Loss::Late(_) }))),
        "{:?}",
        ends[0]
    );
}
