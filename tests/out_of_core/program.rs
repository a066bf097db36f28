//! `lookback scan`.

use assert_cmd::cargo::cargo_bin;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A folder with an input, and what its sum should be.
struct Place {
    folder: TempDir,
    sums: Vec<u32>,
}

/// 160 chunks or so.
const SMALL_CHUNKS: [&str; 6] = ["--device-memory", "64KiB", "--host-memory", "24KiB", "--checkpoint", "16KiB"];

impl Place {
    fn new(n: u32) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let numbers: Vec<u32> = (0..n).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        let sum = |sum: &mut u32, x: &u32| {
            *sum = sum.wrapping_add(*x);
            Some(*sum)
        };
        let sums = numbers.iter().scan(0, sum).collect();
        fs::write(folder.path().join("in.npy"), npy(&numbers)).expect("it is written");
        Self { folder, sums }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin!("lookback"));
        command.current_dir(self.folder.path()).args(["scan", "--device", "cpu"]).args(words);
        command.env_remove("RUST_BACKTRACE").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("the program starts")
    }

    fn spawn(&self, words: &[&str]) -> Child {
        self.command(words).spawn().expect("the program starts")
    }

    /// The refusal of one that leaves nothing behind.
    #[track_caller]
    fn refused(&self, words: &[&str], code: i32, word: &str) {
        let before = self.names();
        let output = self.run(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(word) && !said.contains("panicked"), "'{word}' is not in: {said}");
        assert_eq!(self.names(), before, "{said}");
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("the folder");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("a file").file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Nothing but the two files, and the sums in the second one.
    #[track_caller]
    fn is_scanned(&self) {
        assert_eq!(self.names(), ["in.npy", "out.npy"]);
        assert!(fs::read(self.path("out.npy")).expect("it is there") == npy(&self.sums), "another array");
    }
}

fn npy(numbers: &[u32]) -> Vec<u8> {
    let header = format!("{{'descr': '<u4', 'fortran_order': False, 'shape': ({},), }}", numbers.len());
    let header = format!("{header:<117}\n");
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), bytemuck::cast_slice(numbers)]
        .concat()
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Waits until something is so, while the program runs.
fn until(child: &mut Child, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none(), "it goes on");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn elements(journal: &Path) -> u64 {
    elements_of(&fs::read_to_string(journal).unwrap_or_default())
}

fn elements_of(journal: &str) -> u64 {
    let journal: serde_json::Value = serde_json::from_str(journal).unwrap_or_default();
    journal["elements"].as_u64().unwrap_or(0)
}

#[test]
fn a_file_is_scanned_into_another_one_and_compared() {
    if !super::has_compiler() {
        return;
    }
    for n in [0, 1, 10_000] {
        let place = Place::new(n);
        let said =
            succeeded(&place.run(&[&["in.npy", "--output", "out.npy", "--measure"], &SMALL_CHUNKS[..]].concat()));
        place.is_scanned();
        assert!(said.contains(&format!("all {n} elements verified")), "{said}");
        assert_eq!(said.contains("% of the slower of disk and PCIe"), n > 0, "{said}");
        // By several devices, and raw, of another type, exclusive.
        let bytes: Vec<u8> = (0..n).map(|i| (i * i) as u8).collect();
        fs::write(place.path("in.bin"), &bytes).unwrap();
        let words = ["in.bin", "--type", "u8", "--output-type", "u64", "--mode", "exclusive", "--output", "out.bin"];
        let said = succeeded(&place.run(&[&words[..], &SMALL_CHUNKS[..], &["--devices", "2"]].concat()));
        assert_eq!(said.contains("on 2 devices"), n > 0, "{said}");
        let before = |sum: &mut u64, x: &u8| {
            let before = *sum;
            *sum += u64::from(*x);
            Some(before)
        };
        let expected: Vec<u64> = bytes.iter().scan(0, before).collect();
        assert!(
            fs::read(place.path("out.bin")).unwrap() == bytemuck::cast_slice::<u64, u8>(&expected),
            "another array"
        );
    }
}

#[test]
fn a_run_that_is_killed_at_any_time_goes_on_to_the_right_result() {
    if !super::has_compiler() {
        return;
    }
    let place = Place::new(300_000);
    let words = [&["in.npy", "--output", "out.npy", "--resume"], &SMALL_CHUNKS[..]].concat();
    let (mut kills, mut seen) = (0, 0);
    for round in 1.. {
        let mut child = place.spawn(&words);
        let start = Instant::now();
        // At first before anything is there, later somewhere in the middle, until a run comes to its end.
        let patience = Duration::from_millis(2 * round);
        while start.elapsed() < patience && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let has_ended = child.try_wait().unwrap().is_some();
        if !has_ended {
            child.kill().unwrap();
            kills += 1;
        }
        let output = child.wait_with_output().unwrap();
        if has_ended {
            succeeded(&output);
            break;
        }
        let left = ["in.npy", "out.npy", "out.npy.partial", "out.npy.partial.json", "out.npy.partial.json.new"];
        assert!(place.names().iter().all(|name| left.contains(&name.as_str())), "{:?}", place.names());
        if place.path("out.npy").exists() {
            // Killed between giving it its name and the end: it is whole.
            let _ = fs::remove_file(place.path("out.npy.partial.json"));
            let _ = fs::remove_file(place.path("out.npy.partial.json.new"));
            break;
        }
        seen = seen.max(elements(&place.path("out.npy.partial.json")));
    }
    assert!(kills > 3 && seen > 0, "{kills} kills, {seen} elements");
    place.is_scanned();
}

#[test]
fn ctrl_c_ends_what_is_under_way_and_says_how_to_go_on() {
    if !super::has_compiler() {
        return;
    }
    let place = Place::new(1_000_000);
    let words = [&["in.npy", "--output", "out.npy"], &SMALL_CHUNKS[..]].concat();
    let journal = place.path("out.npy.partial.json");
    let mut child = place.spawn(&words);
    until(&mut child, || elements(&journal) > 0);
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let done = elements(&journal);
    assert!(0 < done && done < 1_000_000, "{done}");
    assert!(said.contains(&format!("behind element {done} of 1000000")) && said.contains("--resume"), "{said}");
    assert!(!place.path("out.npy").exists());
    // What is there is right, and not replaced by a run that does not say so.
    let partial = fs::read(place.path("out.npy.partial")).unwrap();
    assert!(partial[..128 + 4 * done as usize] == npy(&place.sums)[..128 + 4 * done as usize], "another array");
    place.refused(&words, 2, "--resume");
    place.refused(&[&words[..], &["--resume", "--mode", "exclusive"]].concat(), 2, "its mode is \"inclusive\"");
    let said = succeeded(&place.run(&[&words[..], &["--resume"]].concat()));
    assert!(said.contains(&format!("from element {done} on")), "{said}");
    place.is_scanned();
}

#[test]
fn two_at_once_do_not_write_one_file() {
    if !super::has_compiler() {
        return;
    }
    let place = Place::new(1_000_000);
    let words = [&["in.npy", "--output", "out.npy"], &SMALL_CHUNKS[..]].concat();
    let mut first = place.spawn(&words);
    until(&mut first, || place.path("out.npy.partial.json").exists());
    let second = place.run(&[&words[..], &["--resume"]].concat());
    let said = String::from_utf8_lossy(&second.stderr);
    // Unless the first one was done in the meantime.
    if first.try_wait().unwrap().is_none() {
        assert!(second.status.code() == Some(2) && said.contains("another process"), "{said}");
    }
    succeeded(&first.wait_with_output().unwrap());
    place.is_scanned();
}

#[test]
fn what_is_changed_or_damaged_in_between_is_not_gone_on_with() {
    if !super::has_compiler() {
        return;
    }
    let place = Place::new(300_000);
    let words = [&["in.npy", "--output", "out.npy", "--resume"], &SMALL_CHUNKS[..]].concat();
    let journal = place.path("out.npy.partial.json");
    let mut child = place.spawn(&words);
    until(&mut child, || elements(&journal) > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    // Killed in the middle of a journal, it leaves one more file, which the next one takes the place of.
    let _ = fs::remove_file(place.path("out.npy.partial.json.new"));
    let kept = fs::read(&journal).unwrap();
    for (text, word) in [
        ("".to_owned(), "not what this program writes"),
        (String::from_utf8_lossy(&kept).replace("\"format\":1", "\"format\":2"), "format 2"),
        (String::from_utf8_lossy(&kept).replace("\"elements\":", "\"elements\":9000000"), "more than there are"),
        (String::from_utf8_lossy(&kept).replace("\"state\":[", "\"state\":[1,"), "a state of 4 bytes"),
    ] {
        fs::write(&journal, text).unwrap();
        place.refused(&words, 2, word);
    }
    fs::write(&journal, &kept).unwrap();
    let partial = fs::read(place.path("out.npy.partial")).unwrap();
    fs::write(place.path("out.npy.partial"), &partial[..1000]).unwrap();
    place.refused(&words, 2, "the file has 1000 bytes");
    fs::write(place.path("out.npy.partial"), &partial).unwrap();
    fs::remove_file(&journal).unwrap();
    place.refused(&words, 2, "without its journal");
    // A state that a scan could have, and this one has not: every element behind it is wrong.
    let text = String::from_utf8_lossy(&kept).into_owned();
    let state = text.find("\"state\":[").expect("a state");
    fs::write(&journal, format!("{}\"state\":[1,2,3,4]}}", &text[..state])).unwrap();
    let wrong = place.run(&words);
    let said = String::from_utf8_lossy(&wrong.stderr);
    let behind = format!("element {} is ", elements_of(&text));
    assert!(wrong.status.code() == Some(1) && said.contains("WRONG") && said.contains(&behind), "{said}");
    assert!(!place.path("out.npy").exists());
    // The same numbers, but for the time at which they were written.
    fs::write(place.path("in.npy"), fs::read(place.path("in.npy")).unwrap()).unwrap();
    place.refused(&words, 2, "its input modified ns is");
    // A file of somebody's under the name of one that is written meanwhile.
    let new = place.path("out.npy.partial.json.new");
    fs::write(&new, b"mine").unwrap();
    place.refused(&words, 2, "no journal of this program");
    assert_eq!(fs::read(&new).unwrap(), b"mine");
    // What a kill has left there.
    fs::write(&new, &kept[..kept.len() / 2]).unwrap();
    // Who deletes what is left, and not the journal, begins anew.
    fs::remove_file(place.path("out.npy.partial")).unwrap();
    succeeded(&place.run(&words));
    place.is_scanned();
}

#[test]
fn what_is_no_array_or_no_place_is_refused_and_nothing_is_left() {
    let lent = Place::new(10);
    fs::rename(lent.path("in.npy"), lent.path("out.partial")).unwrap();
    lent.refused(&["out.partial", "--type", "u32", "--output", "out"], 2, "which is the input");
    assert_eq!(lent.names(), ["out.partial"]);
    let place = Place::new(100);
    let whole = fs::read(place.path("in.npy")).unwrap();
    for journal in ["out.npy.partial.json", "out.npy.partial.json.new"] {
        let journal = place.path(journal);
        for mine in ["mine", "{\"mine\":1}"] {
            fs::write(&journal, mine).unwrap();
            place.refused(&["in.npy", "--output", "out.npy"], 2, "no journal of this program");
            assert_eq!(fs::read_to_string(&journal).unwrap(), mine);
        }
        fs::remove_file(&journal).unwrap();
        #[cfg(unix)]
        {
            let victim = place.path("victim");
            fs::write(&victim, "mine").unwrap();
            std::os::unix::fs::symlink(&victim, &journal).unwrap();
            place.refused(&["in.npy", "--output", "out.npy"], 2, "it is a link");
            assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
            fs::remove_file(&journal).unwrap();
            fs::remove_file(&victim).unwrap();
        }
    }
    let text = |from: &str, to: &str| {
        let header = String::from_utf8_lossy(&whole[10..128]).replace(from, to);
        [&whole[..10], header.as_bytes(), &whole[128..]].concat()
    };
    for (name, bytes) in [
        ("cut.npy", whole[..500].to_vec()),
        ("empty.npy", Vec::new()),
        ("fortran.npy", text("False, 'shape': (100,), ", "True , 'shape': (50,2), ")),
        ("big.npy", text("<u4", ">u4")),
        ("bool.npy", text("<u4", "|b1")),
        ("odd.bin", vec![0; 7]),
        ("there.npy", Vec::new()),
    ] {
        fs::write(place.path(name), bytes).unwrap();
    }
    let refused = |input: &str, more: &[&str], word: &str| {
        place.refused(&[&[input, "--output", "out.npy"], more].concat(), 2, word);
    };
    refused("none.npy", &[], "cannot read none.npy");
    refused("cut.npy", &[], "cut off");
    refused("empty.npy", &[], "does not begin with");
    refused("fortran.npy", &[], "Fortran order");
    refused("big.npy", &[], "big-endian");
    refused("bool.npy", &[], "'|b1'");
    refused("odd.bin", &[], "--type");
    refused("odd.bin", &["--type", "u32"], "no multiple of the 4 bytes");
    refused("in.npy", &["--type", "f32"], "holds u32 elements");
    refused("in.npy", &["--operator", "affine"], "affine");
    refused("in.npy", &["--mode", "inclusive-minus-input"], "takes inputs off again");
    refused("in.npy", &["--device-memory", "100"], "too little");
    refused("in.npy", &["--host-memory", "10"], "too little");
    refused("in.npy", &["--host-memory", "some"], "--host-memory");
    refused("odd.bin", &["--type", "bf16"], "no multiple of the 2 bytes");
    place.refused(&["in.npy", "--output", "there.npy"], 2, "is there already");
    place.refused(&["in.npy", "--output", "in.npy"], 2, "is there already");
    place.refused(&["in.npy", "--output", "nowhere/out.npy"], 2, "folder that is not there");
    place.refused(&["in.npy", "--output", "./"], 2, "is the name of a folder");
    place.refused(&["in.npy", "--output-type", "f16", "--output", "out.npy"], 2, "cannot hold f16");
    #[cfg(target_os = "linux")]
    place.refused(&["/dev/zero", "--type", "u8", "--output", "out.bin"], 2, "a device");
}
