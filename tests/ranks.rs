//! Scans over several ranks on CPU devices, threads of one process and processes of their own: every one against the loop that it
//! stands for, and every lost rank named by all others.
#![cfg(all(feature = "cpu", feature = "lab"))]

#[path = "ranks/cyclic.rs"]
mod cyclic;

use bytemuck::{Pod, Zeroable};
use lookback::element::{ArrayElement, Defined, Definition, ElementType, Operator};
use lookback::lab::cpu_device::CpuSettings;
use lookback::lab::cpu_kernels::NoKernel;
use lookback::lab::device::DeviceError;
use lookback::lab::host_compiler::HostCompilerError;
use lookback::lab::host_ranks::HostRanks;
use lookback::lab::host_scanner::HostScanner;
use lookback::ranks::{Group, Loss, Place, RankError, shard};
use lookback::run::AnyScanner;
use lookback::strategy::{CallError, ConfigError, Mode, ScanConfig, Strategy};
use proptest::prelude::*;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::slice::from_mut;
use std::time::{Duration, Instant};

/// Long enough for a compiler.
const PATIENCE: Duration = Duration::from_secs(120);
/// Of tests in which somebody is waited for in vain.
const SHORT: Duration = Duration::from_millis(400);

/// x -> factor · x + addend, modulo 2^32: does not commute.
#[repr(C, align(8))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
struct Map {
    factor: u32,
    addend: u32,
}

impl ArrayElement for Map {
    const CUDA_TYPE: &'static str = "map";
}

impl Map {
    const IDENTITY: Self = Self { factor: 1, addend: 0 };

    fn of(x: u8) -> Self {
        Self { factor: 2 * u32::from(x) + 1, addend: u32::from(x) + 7 }
    }

    fn then(self, right: Self) -> Self {
        Self {
            factor: self.factor.wrapping_mul(right.factor),
            addend: right.factor.wrapping_mul(self.addend).wrapping_add(right.addend),
        }
    }
}

/// Bytes are loaded, maps of 8 bytes scanned, and both they and numbers of 2 bytes stored.
fn maps() -> Defined {
    Definition::new::<Map>("maps of bytes", "map")
        .declare("struct alignas(8) map { u32 factor; u32 addend; };")
        .identity("{1, 0}")
        .combine("return {left.factor * right.factor, right.factor * left.addend + right.addend};")
        .input::<u8>("x")
        .load("return {2u * x + 1u, x + 7u};")
        .output::<Map>("all")
        .output::<u16>("part")
        .store("all = state; part = static_cast<u16>(state.addend);")
        .define()
        .expect("a whole definition")
}

fn sums() -> Defined {
    let sums = Definition::of_numbers(Operator::Sum, ElementType::U8, ElementType::U32).expect("numbers");
    sums.define().expect("a whole definition")
}

/// Every access is looked at, and tiles of 64 · VT are small, so that there are many.
fn scanner(vt: u32) -> HostScanner {
    let config = ScanConfig { vt, block_threads: 64, ..ScanConfig::default() };
    HostScanner::new(CpuSettings { check_bounds: true, ..CpuSettings::default() })
        .with_strategy(Strategy::Lookback)
        .with_config(config)
}

/// Whether there is no C++ compiler to make kernels with.
fn is_skipped<R>(ends: &[Result<R, DeviceError>]) -> bool {
    let lacks = |end: &Result<R, DeviceError>| {
        matches!(
            end,
            Err(DeviceError::NoKernel(NoKernel::Compiler(
                HostCompilerError::NoCompiler { .. } | HostCompilerError::NotAble { .. }
            )))
        )
    };
    let skipped = ends.iter().any(lacks);
    if skipped {
        assert!(std::env::var("LOOKBACK_REQUIRE_THREAD_SANITIZER").as_deref() != Ok("1"), "there is no compiler");
        println!("skipped: no C++ compiler");
    }
    skipped
}

/// What each rank of a group in this process comes to, in order.
fn each<R: Send>(
    groups: Vec<Group>,
    deed: impl Fn(HostRanks) -> Result<R, DeviceError> + Sync,
) -> Vec<Result<R, DeviceError>> {
    std::thread::scope(|scope| {
        let deed = &deed;
        let ranks: Vec<_> = groups.into_iter().map(|group| scope.spawn(move || deed(HostRanks::new(group)))).collect();
        ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
    })
}

fn in_process(size: usize) -> Vec<Group> {
    Group::in_process(size, PATIENCE).expect("a few ranks")
}

/// The scan of all ranks' shards, put together: maps, and numbers of 2 bytes. Deferred, the reader combines.
fn scanned(x: &[u8], size: usize, mode: Mode, is_deferred: bool, vt: u32) -> Option<(Vec<Map>, Vec<u16>)> {
    let ends = each(in_process(size), |ranks| {
        let mine = shard(x.len() as u64, ranks.group().rank(), size);
        let mine = &x[mine.start as usize..mine.end as usize];
        let (mut all, mut part) = (vec![Map::zeroed(); mine.len()], vec![0; mine.len()]);
        let mut scanner = scanner(vt);
        let run = scanner.run(maps()).input(mine).output(&mut all).output(&mut part);
        if is_deferred {
            let mut carry = Map::zeroed();
            ranks.scan_deferred(run, mode, &mut carry)?;
            let read: Vec<_> = all.iter().map(|&state| carry.then(state)).collect();
            part = read.iter().map(|state| state.addend as u16).collect();
            all = read;
        } else {
            ranks.scan(run, mode)?;
        }
        ranks.finish()?;
        Ok((all, part))
    });
    if is_skipped(&ends) {
        return None;
    }
    let (all, parts): (Vec<_>, Vec<_>) = ends.into_iter().map(|end| end.expect("no rank fails")).unzip();
    Some((all.concat(), parts.concat()))
}

fn expected(x: &[u8], mode: Mode) -> Vec<Map> {
    let mut running = Map::IDENTITY;
    let next = |&x: &u8| {
        let before = running;
        running = before.then(Map::of(x));
        if mode == Mode::Exclusive { before } else { running }
    };
    x.iter().map(next).collect()
}

/// Elements round the ends of tiles and shards, and fewer than there are ranks.
fn length() -> impl Strategy_<Value = usize> {
    prop_oneof![
        0..8_usize,
        (0..6_usize, 0..5_usize).prop_map(|(tiles, more)| (tiles * 128 + more).saturating_sub(2)),
        0..1500_usize
    ]
}
use proptest::strategy::Strategy as Strategy_;

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shards_are_scanned_as_one_array(
        (n, size, vt) in (length(), 1..=5_usize, prop_oneof![Just(1_u32), Just(2), Just(4)]),
        (is_exclusive, is_deferred) in (any::<bool>(), any::<bool>()),
        seed in any::<u8>(),
    ) {
        let x: Vec<u8> = (0..n).map(|i| (i as u8).wrapping_mul(37).wrapping_add(seed)).collect();
        let mode = if is_exclusive { Mode::Exclusive } else { Mode::Inclusive };
        if let Some((all, part)) = scanned(&x, size, mode, is_deferred, vt) {
            let expected = expected(&x, mode);
            prop_assert_eq!(part, expected.iter().map(|state| state.addend as u16).collect::<Vec<_>>());
            prop_assert_eq!(all, expected);
        }
    }
}

/// What `auto` chooses, in place, too.
#[test]
fn numbers_are_counted_over_all_ranks() {
    for n in [0_usize, 3, 20_000] {
        let x: Vec<u8> = (0..n).map(|i| (i * 31) as u8).collect();
        let ends = each(in_process(4), |ranks| {
            let mine = shard(n as u64, ranks.group().rank(), 4);
            let mine = &x[mine.start as usize..mine.end as usize];
            let (mut wide, mut scanner) = (vec![0_u32; mine.len()], HostScanner::default());
            ranks.scan(scanner.run(sums()).input(mine).output(&mut wide), Mode::Inclusive)?;
            Ok(wide)
        });
        if is_skipped(&ends) {
            return;
        }
        let wide: Vec<u32> = ends.into_iter().flat_map(|end| end.expect("no rank fails")).collect();
        let mut running = 0;
        for (x, wide) in x.iter().zip(wide) {
            running += u32::from(*x);
            assert_eq!(wide, running);
        }
    }
}

#[test]
fn a_total_combines_all_elements_in_their_order() {
    for n in [0_usize, 1, 127, 128, 129, 10_000] {
        let x: Vec<u8> = (0..n).map(|i| (i * 7) as u8).collect();
        let mut total = Map::zeroed();
        let made = scanner(2).run(maps()).input(&x).total(from_mut(&mut total));
        if is_skipped(&[made]) {
            return;
        }
        assert_eq!(total, x.iter().fold(Map::IDENTITY, |total, &x| total.then(Map::of(x))), "{n}");
    }
    let mut total = Map::zeroed();
    let refused = scanner(2).run(maps()).input::<u8>(&[1]).output::<u16>(&mut [0]).total(from_mut(&mut total));
    assert!(refused.is_err(), "a total stores nothing else");
}

/// A scan never reads the last input then, but the ranks behind do.
#[test]
fn a_shard_without_its_last_input_is_refused() {
    let ends = each(in_process(2), |ranks: HostRanks| {
        let (mut all, mut part) = ([Map::zeroed(); 4], [0_u16; 4]);
        let mut scanner = scanner(1);
        let run = scanner.run(maps()).input(&[1, 2, 3_u8]).output(&mut all).output(&mut part);
        ranks.scan(run, Mode::Exclusive)
    });
    let is_short = |end: &Result<(), DeviceError>| matches!(end, Err(DeviceError::Config(ConfigError::Call(call))) if matches!(**call, CallError::ShortShard(_)));
    assert!(ends.iter().any(is_short) && ends.iter().all(Result::is_err), "{ends:?}");
}

#[test]
fn what_is_no_shard_is_refused_at_every_rank() {
    let refused = |ranks: HostRanks| {
        let (mut all, mut part) = ([Map::zeroed(); 4], [0_u16; 4]);
        let mut scanner = scanner(1);
        let run = scanner.run(maps()).input(&[1, 2, 3, 4_u8]).output(&mut all).output(&mut part);
        // One rank asks for what cannot be, and the others wait for it.
        if ranks.group().rank() == 1 {
            ranks.scan(run.rows(2), Mode::Inclusive)
        } else {
            Ok(ranks.group().barrier()?)
        }
    };
    let ends = each(in_process(3), refused);
    assert!(
        matches!(&ends[1], Err(DeviceError::Config(ConfigError::Call(call))) if matches!(**call, CallError::OfRanks(_))),
        "{:?}",
        ends[1]
    );
    for rank in [0, 2] {
        let Err(DeviceError::Ranks(RankError::Lost { rank: 1, size: 3, loss: Loss::Failed(why) })) = &ends[rank] else {
            panic!("{:?}", ends[rank])
        };
        assert!(why.contains("ranks share one sequence"), "{why}");
    }
}

/// Nobody listens there.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has one").to_string()
}

fn place(rank: usize, size: usize, address: &str) -> Place {
    Place { rank, size, local_rank: rank, address: address.to_owned() }
}

/// Ranks with a connection each, as if they were processes.
fn joined(came: &[usize], size: usize, timeout: Duration) -> Vec<Result<Group, RankError>> {
    let address = free_address();
    std::thread::scope(|scope| {
        let ranks: Vec<_> = came
            .iter()
            .map(|&rank| {
                let place = place(rank, size, &address);
                scope.spawn(move || Group::join(&place, timeout))
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
    })
}

fn all_joined(size: usize, timeout: Duration) -> Vec<Group> {
    let came: Vec<usize> = (0..size).collect();
    joined(&came, size, timeout).into_iter().map(|group| group.expect("all have come")).collect()
}

/// What ranks end with where each waits for all.
fn ends_of(groups: Vec<Group>, deed: impl Fn(Group) -> Result<(), RankError> + Sync) -> Vec<Result<(), RankError>> {
    std::thread::scope(|scope| {
        let deed = &deed;
        let ranks: Vec<_> = groups.into_iter().map(|group| scope.spawn(move || deed(group))).collect();
        ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
    })
}

fn lost<T>(end: &Result<T, RankError>) -> (usize, Loss) {
    match end {
        Err(RankError::Lost { rank, loss, .. }) => (*rank, loss.clone()),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("no rank was lost"),
    }
}

#[test]
fn parts_come_in_the_order_of_the_ranks_however_they_are_connected() {
    for groups in [in_process(4), all_joined(4, PATIENCE)] {
        let ends = ends_of(groups, |group| {
            for round in 0..50_u8 {
                let parts = group.all_gather(&[group.rank() as u8, round])?;
                assert_eq!(&parts[..], [0, round, 1, round, 2, round, 3, round]);
            }
            group.finish()
        });
        assert!(ends.iter().all(Result::is_ok), "{ends:?}");
    }
}

#[test]
fn a_rank_that_never_comes_is_named_by_all() {
    let begin = Instant::now();
    let ends = joined(&[0, 1, 3], 4, SHORT);
    for end in &ends {
        assert_eq!(lost(end), (2, Loss::Absent(SHORT)));
    }
    // And rank 0 by those who look for it.
    let ends = joined(&[1, 2], 3, SHORT);
    for end in &ends {
        assert_eq!(lost(end), (0, Loss::Absent(SHORT)));
    }
    assert!(begin.elapsed() < 10 * SHORT, "{:?}", begin.elapsed());
}

#[test]
fn a_rank_that_does_not_take_its_part_is_named_by_all() {
    for late in [0, 2] {
        for groups in [Group::in_process(3, SHORT).expect("three"), all_joined(3, SHORT)] {
            let begin = Instant::now();
            let ends = ends_of(groups, |group| {
                if group.rank() != late {
                    return group.barrier();
                }
                group.await_loss(10 * SHORT)
            });
            for end in &ends {
                assert_eq!(lost(end), (late, Loss::Late(SHORT)));
            }
            assert!(begin.elapsed() < 5 * SHORT, "{:?}", begin.elapsed());
        }
    }
}

#[test]
fn a_rank_that_leaves_early_is_named_by_who_needs_it() {
    for leaves in [0, 1] {
        for groups in [in_process(3), all_joined(3, PATIENCE)] {
            let ends = ends_of(groups, |group| if group.rank() == leaves { Ok(()) } else { group.barrier() });
            for (rank, end) in ends.iter().enumerate().filter(|(rank, _)| *rank != leaves) {
                assert_eq!(lost(end), (leaves, Loss::Left), "rank {rank}");
            }
        }
    }
}

/// A process that is stopped, or whose machine is gone, keeps its connection.
#[test]
fn a_rank_of_which_nothing_is_heard_is_named_by_all() {
    let address = free_address();
    let (first, second) = std::thread::scope(|scope| {
        let ranks = [0, 1].map(|rank| {
            let place = place(rank, 3, &address);
            scope.spawn(move || Group::join(&place, SHORT))
        });
        let mut silent = loop {
            match TcpStream::connect(&address) {
                Ok(connection) => break connection,
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let numbers = [2_u64, 3].map(u64::to_le_bytes).concat();
        silent.write_all(&[&[0, 24, 0, 0, 0], &b"lookback"[..], &numbers].concat()).expect("it is connected");
        silent.read_exact(&mut [0; 5]).expect("it is welcome");
        let [first, second] = ranks.map(|rank| rank.join().expect("no rank panics").expect("all have come"));
        let ends = (first.await_loss(10 * SHORT), second.await_loss(10 * SHORT));
        drop(silent);
        ends
    });
    assert_eq!(lost(&first), (2, Loss::Silent(SHORT)));
    assert_eq!(lost(&second), (2, Loss::Silent(SHORT)));
}

#[test]
fn ranks_that_are_not_of_one_mind_are_told() {
    let address = free_address();
    let ends: Vec<_> = std::thread::scope(|scope| {
        let ranks = [place(0, 3, &address), place(1, 2, &address)];
        let ranks = ranks.map(|place| scope.spawn(move || Group::join(&place, PATIENCE)));
        ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
    });
    for end in &ends {
        assert!(matches!(lost(end), (1, Loss::Failed(why)) if why.contains("one of 2 ranks")));
    }
    let ends = ends_of(in_process(3), |group| group.all_gather(&vec![0; 1 + group.rank() / 2]).map(drop));
    for end in &ends {
        assert!(matches!(lost(end), (2, Loss::Failed(why)) if why.contains("other bytes")), "{end:?}");
    }
}

const CHILD: &str = "LOOKBACK_TEST_RANK";

/// One of the processes of the next test.
#[test]
fn a_rank_in_a_process_of_its_own() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let group =
        Group::join(&Place::from_environment().expect("they are set"), Duration::from_secs(10)).expect("all come");
    let ranks = HostRanks::new(group);
    let (x, mut all, mut part) = (vec![3_u8; 3000], vec![Map::zeroed(); 3000], vec![0_u16; 3000]);
    let mut scanner = scanner(2);
    // Kernels may be compiled here.
    let warm = scanner.run(maps()).input(&x).output(&mut all).output(&mut part);
    if is_skipped(&[ranks.scan(warm, Mode::Inclusive)]) {
        println!("\nNO COMPILER");
        return;
    }
    println!("\nSCANNING");
    loop {
        let run = scanner.run(maps()).input(&x).output(&mut all).output(&mut part);
        if let Err(error) = ranks.scan(run, Mode::Inclusive) {
            println!("\nEND {error}");
            return;
        }
    }
}

fn child(rank: usize, size: usize, port: &str) -> Child {
    Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "a_rank_in_a_process_of_its_own", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .envs([("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", port)])
        .envs([("RANK", rank.to_string()), ("WORLD_SIZE", size.to_string())])
        .env_remove("TORCHELASTIC_RUN_ID")
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process starts")
}

/// The lines of a process up to one that begins so, or nothing if it ends before.
fn line(reader: &mut impl BufRead, begin: &str) -> Option<String> {
    reader.lines().map_while(Result::ok).find(|line| line.starts_with(begin))
}

#[test]
fn a_rank_that_is_killed_in_mid_scan_is_named_by_all_others() {
    const SIZE: usize = 3;
    for round in 0..10 {
        let drawn = RandomState::new().hash_one(round);
        let (killed, pause) = ((drawn % SIZE as u64) as usize, Duration::from_micros(drawn / 8 % 60_000));
        let address = free_address();
        let port = address.rsplit(':').next().expect("it has one");
        let mut children: Vec<Child> = (0..SIZE).map(|rank| child(rank, SIZE, port)).collect();
        let mut outputs: Vec<_> =
            children.iter_mut().map(|child| BufReader::new(child.stdout.take().expect("it is piped"))).collect();
        let are_scanning = outputs.iter_mut().all(|output| line(output, "SCANNING").is_some());
        if are_scanning {
            std::thread::sleep(pause);
        }
        children[killed].kill().expect("it runs");
        let begin = Instant::now();
        let ends: Vec<_> = outputs.iter_mut().map(|output| line(output, "END ")).collect();
        children.iter_mut().for_each(|child| drop(child.wait()));
        if !are_scanning {
            println!("skipped: a rank did not come so far");
            assert!(std::env::var("LOOKBACK_REQUIRE_THREAD_SANITIZER").as_deref() != Ok("1"));
            return;
        }
        let told = format!("END rank {killed} of {SIZE} died: its connection ended");
        for (rank, end) in ends.iter().enumerate().filter(|(rank, _)| *rank != killed) {
            assert_eq!(end.as_deref(), Some(&*told), "rank {rank}, rank {killed} killed after {pause:?}");
        }
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    }
}

#[cfg(feature = "cli")]
mod program {
    use super::*;
    use assert_cmd::cargo::cargo_bin;
    use std::process::Output;

    fn compare(words: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin!("lookback"));
        command.args(["compare", "--device", "cpu"]).args(words);
        command
    }

    fn text(output: &Output) -> String {
        [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat()
    }

    #[test]
    fn several_devices_of_one_process_are_verified_and_drawn() {
        let folder = tempfile::tempdir().expect("a folder");
        let results = folder.path().join("results");
        let words =
            ["--ranks", "3", "--operators", "sum,intervals", "--modes", "exclusive", "--sizes", "0,2,3000", "--output"];
        let output = compare(&words).arg(&results).output().expect("it runs");
        if text(&output).contains("C++ compiler") {
            return println!("skipped: {}", text(&output));
        }
        assert!(output.status.success(), "{}", text(&output));
        let lines = text(&output);
        assert_eq!(lines.matches("  ok\n").count(), 18, "{lines}");
        assert!(lines.contains("3 ranks, index-interval intervals exclusive"), "{lines}");
        let names: Vec<_> = std::fs::read_dir(&results)
            .expect("a folder")
            .map(|entry| entry.expect("it can be read").file_name().into_string().expect("ASCII"))
            .collect();
        assert!(names.contains(&String::from("ranks.json")), "{names:?}");
        let picture = std::fs::read_to_string(results.join("ranks-3-u32-sum-exclusive.svg")).expect("it was drawn");
        assert!(
            picture.contains("contiguous by its bytes") && picture.contains(" times one device's rate at 3000"),
            "{picture}"
        );
        // It is drawn again from the record alone; what is no record is refused, and nothing is lost.
        let report = || {
            let mut command = Command::new(cargo_bin!("lookback"));
            command.arg("report").arg(&results).output().expect("it runs")
        };
        std::fs::remove_file(results.join("ranks-3-u32-sum-exclusive.svg")).expect("it is there");
        assert!(report().status.success());
        let again = std::fs::read_to_string(results.join("ranks-3-u32-sum-exclusive.svg")).expect("it was drawn");
        assert!(again == picture, "another picture");
        std::fs::write(results.join("ranks.json"), "{\"header\": {\"format\": 9}}").expect("it can be written");
        assert!(report().status.code() == Some(2) && text(&report()).contains("has format 9"), "{}", text(&report()));
    }

    #[test]
    fn chunks_that_are_dealt_are_drawn_by_their_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let results = folder.path().join("results");
        let words = ["--ranks", "2", "--manners", "cyclic", "--chunks", "256,512", "--sizes", "3000", "--output"];
        let output = compare(&words).arg(&results).output().expect("it runs");
        if text(&output).contains("C++ compiler") {
            return println!("skipped: {}", text(&output));
        }
        assert!(output.status.success(), "{}", text(&output));
        assert_eq!(text(&output).matches("  ok\n").count(), 2, "{}", text(&output));
        let picture = results.join("ranks-2-u32-sum-inclusive-chunks.svg");
        let picture = std::fs::read_to_string(picture).expect("it was drawn");
        assert!(picture.contains("elements of a chunk") && picture.contains("in chunks of 256 "), "{picture}");
    }

    #[test]
    fn what_was_scanned_before_a_rank_failed_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let results = folder.path().join("results");
        // No whole tiles, which the scans of shards before it need not be.
        let words = ["--ranks", "2", "--sizes", "1000", "--chunks", "1", "--output"];
        let output = compare(&words).arg(&results).output().expect("it runs");
        if text(&output).contains("C++ compiler") {
            return println!("skipped: {}", text(&output));
        }
        assert!(output.status.code() == Some(2) && text(&output).contains("no whole tiles"), "{}", text(&output));
        let record = std::fs::read(results.join("ranks.json")).expect("it was kept");
        let record: serde_json::Value = serde_json::from_slice(&record).expect("it is JSON");
        assert_eq!(record["rows"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn processes_of_a_launcher_find_each_other_and_rank_0_speaks() {
        let address = free_address();
        let port = address.rsplit(':').next().expect("it has one");
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("two").to_string_lossy().into_owned();
        let ranks = ["0", "1"].map(|rank| {
            // All are given the same folder, which rank 0 alone takes.
            let mut command = compare(&["--ranks", "env", "--sizes", "1000", "--format", "json", "--output", &output]);
            command.envs([("OMPI_COMM_WORLD_RANK", rank), ("OMPI_COMM_WORLD_SIZE", "2"), ("MASTER_PORT", port)]);
            command.env_remove("TORCHELASTIC_RUN_ID").stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("it runs")
        });
        let [first, second] = ranks.map(|rank| rank.wait_with_output().expect("it ends"));
        if text(&first).contains("C++ compiler") {
            return println!("skipped: {}", text(&first));
        }
        assert!(first.status.success() && second.status.success(), "{}{}", text(&first), text(&second));
        assert!(second.stdout.is_empty(), "{}", text(&second));
        let record: serde_json::Value = serde_json::from_slice(&first.stdout).expect("it is JSON");
        let rows = record["rows"].as_array().expect("rows");
        assert_eq!(rows.iter().map(|row| row["wrong"].as_u64()).collect::<Vec<_>>(), [Some(0), Some(0)]);
        let again = compare(&["--ranks", "2", "--sizes", "1000", "--output", &output]).output().expect("it ends");
        assert!(again.status.code() == Some(2) && text(&again).contains("which stays"), "{}", text(&again));
    }

    #[test]
    fn what_ranks_cannot_do_is_refused() {
        for (words, why) in [
            (&["--ranks", "0"][..], "expected the number of devices"),
            (&["--ranks", "2", "--strategies", "chained"], "--strategies has no effect here"),
            (&["--ranks", "2", "--operators", "max"], "over ranks sums of"),
            (&["--timeout", "3"], "--ranks"),
            (&["--ranks", "env"], "no launcher has said"),
            (&["--ranks", "2", "--sizes", "2^40"], "8796093022208 bytes"),
        ] {
            let mut command = compare(words);
            command.env_remove("RANK").env_remove("OMPI_COMM_WORLD_RANK").env_remove("SLURM_PROCID");
            let output = command.output().expect("it runs");
            assert_eq!(output.status.code(), Some(2), "{words:?}: {}", text(&output));
            assert!(text(&output).contains(why), "{words:?}: {}", text(&output));
        }
    }
}
