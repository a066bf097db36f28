//! Faults on purpose of the host's Rust, as data in `tests/host_faults/rows`: each is woven into a copy of the sources,
//! and the test that it names must fail there. What a GPU would punish at some other time is seen by the driver that runs
//! nothing (`tests/driver.rs`).
//!
//! ```sh
//! cargo test --release --test host_faults                             # every fault has its place and its test
//! cargo test --release --test host_faults -- --ignored --nocapture    # every fault is seen
//! ```
//!
//! `LOOKBACK_HOST_FAULTS` takes parts of names, separated by commas; `LOOKBACK_HOST_FAULTS_SAMPLE` so many of those,
//! drawn by `LOOKBACK_HOST_FAULTS_SEED`. The second needs what `tests/driver.rs` needs: NVRTC, a C++ compiler, no GPU.
#![cfg(all(feature = "cuda", feature = "lab", target_os = "linux"))]

mod common;
#[path = "host_faults/copy.rs"]
mod copy;
#[path = "host_faults/row.rs"]
mod row;
#[path = "host_faults/source.rs"]
mod source;

use common::{number, variable};
use copy::{Copy, End};
use row::Fault;
use sha2::{Digest as _, Sha256};
use source::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file in a folder and in those inside it, sorted.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder that can be read") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

#[test]
fn every_fault_has_its_place_and_its_test() {
    let faults = Fault::all(root()).unwrap_or_else(|error| panic!("{error}"));
    assert!(faults.len() >= 25, "{} host faults", faults.len());
    let mut names = BTreeSet::new();
    let mut wrong = Vec::new();
    for fault in &faults {
        let is_name = fault.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if fault.name.is_empty() || !is_name {
            wrong.push(format!("'{}' is no name: lower-case letters, digits and _", fault.name));
        }
        if !names.insert(&fault.name) {
            wrong.push(format!("there are two host faults '{}'", fault.name));
        }
        if !fault.has_its_test(root()) {
            wrong.push(format!("the host fault '{}': there is no test {}", fault.name, fault.test));
        }
        wrong.extend(fault.woven(root()).err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_place_is_found_by_its_tokens_and_only_once() {
    let text = "impl<'a> A<'a> { fn f(&'a self) -> u32 { g(1); /* g(2) */ g( 2 ,3); g(1) } }\n\
                impl Drop for A<'_> { fn drop(&mut self) {} }\n\
                #[cfg(test)] mod tests { #[test] fn t() { g(1); } fn h() {} }";
    let source = Source::new(text.to_owned()).expect("it is Rust");
    let functions: Vec<_> = source.functions.iter().map(|known| (known.path.as_str(), known.is_test)).collect();
    assert_eq!(functions, [("A::f", false), ("A::drop", false), ("tests::t", true), ("tests::h", false)]);
    let place = source.find("A::f", "g(2, 3)").expect("it stands there once");
    assert_eq!(&text[place.clone()], "g( 2 ,3)");
    let woven = source.with(vec![(place, "h()")]).expect("something is changed");
    assert_eq!(woven, text.replace("g( 2 ,3)", "h()"));
    let second = source.find("A::f", "; g(1)").expect("the other one is the last statement");
    assert!(second.start > text.find("g( 2").expect("it is there"));
    for (function, sought, why) in [
        ("A::f", "g(1)", "2 times"),
        ("A::f", "g(4)", "does not stand"),
        ("A::g", "g(1)", "0 functions"),
        ("A::f", "", "nothing"),
        ("A::f", "g(", "`g(`"),
    ] {
        let error = source.find(function, sought).expect_err("no place");
        assert!(error.contains(why), "{error}");
    }
    let all = source.find("tests::t", "g(1)").expect("it stands there");
    assert!(source.with(vec![(all.clone(), "g ( 1 )")]).expect_err("the same").contains("changes nothing"));
    assert!(source.with(vec![(all.clone(), "if")]).is_err(), "no Rust");
    assert!(source.with(vec![(all.clone(), "a()"), (all, "b()")]).expect_err("twice").contains("cut across"));
}

/// Those that the environment names, and of them a sample if it asks for one.
fn chosen(faults: Vec<Fault>) -> Vec<Fault> {
    let parts = variable("LOOKBACK_HOST_FAULTS").unwrap_or_default();
    let is_named = |fault: &Fault| parts.split(',').any(|part| fault.name.contains(part));
    let mut named: Vec<Fault> = faults.into_iter().filter(is_named).collect();
    assert!(!named.is_empty(), "LOOKBACK_HOST_FAULTS is '{parts}', and no host fault has that in its name");
    if let Some(sample) = number("LOOKBACK_HOST_FAULTS_SAMPLE") {
        let seed = number("LOOKBACK_HOST_FAULTS_SEED").unwrap_or(0);
        named.sort_by_key(|fault| Sha256::digest(format!("{seed} {}", fault.name)));
        named.truncate(sample.try_into().unwrap_or(usize::MAX));
    }
    named
}

#[test]
#[ignore = "builds the tests once for each fault"]
fn every_fault_is_seen() {
    let start = Instant::now();
    let faults = chosen(Fault::all(root()).unwrap_or_else(|error| panic!("{error}")));
    let copy = Copy::new(root()).expect("the folder for tests can be written");
    let programs: BTreeSet<&str> = faults.iter().map(|fault| fault.test().0).collect();
    let built = copy.build(&programs).unwrap_or_else(|error| panic!("without a fault:\n{error}"));
    // A test that fails anyway sees nothing. How long each takes is the measure of what takes too long.
    let mut limits: BTreeMap<&str, Duration> = BTreeMap::new();
    for fault in &faults {
        if limits.contains_key(fault.test.as_str()) {
            continue;
        }
        let (program, test) = fault.test();
        let begun = Instant::now();
        let end = copy.run(&built[program], test, Duration::from_secs(300)).expect("the test can be run");
        assert_eq!(end, End::Passed, "{} without a fault", fault.test);
        limits.insert(&fault.test, Duration::from_secs(10) + 5 * begun.elapsed());
    }
    println!("without a fault {} tests pass: {:.0} s with the build", limits.len(), start.elapsed().as_secs_f64());
    let mut wrong = Vec::new();
    for fault in &faults {
        let begun = Instant::now();
        let whole = std::fs::read(root().join(&fault.file)).expect("it was copied");
        let woven = fault.woven(root()).unwrap_or_else(|error| panic!("{error}"));
        copy.write(&fault.file, woven.as_bytes()).expect("the copy can be written");
        let (program, test) = fault.test();
        let end = copy
            .build(&BTreeSet::from([program]))
            .map(|built| copy.run(&built[program], test, limits[fault.test.as_str()]).expect("the test can be run"));
        copy.write(&fault.file, &whole).expect("the copy can be written");
        let (is_seen, how) = match end {
            Ok(End::Failed(message)) => (true, message),
            Ok(End::TookTooLong) => (fault.hangs, "nothing came back".to_owned()),
            Ok(End::Passed) => (false, "the test passes".to_owned()),
            Err(error) => (false, format!("it does not compile:\n{error}")),
        };
        let seconds = begun.elapsed().as_secs_f64();
        let line = format!("{} ({}), {}: {how}", fault.name, fault.text, fault.test);
        println!("{} in {seconds:.1} s: {line}", if is_seen { "seen" } else { "NOT SEEN" });
        if !is_seen {
            wrong.push(line);
        }
    }
    let seen = faults.len() - wrong.len();
    println!("{seen} of {} host faults were seen, in {:.0} s", faults.len(), start.elapsed().as_secs_f64());
    assert!(wrong.is_empty(), "not seen:\n{}", wrong.join("\n"));
}
