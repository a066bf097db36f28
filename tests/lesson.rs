//! The lesson: its page has all that the document has, each of its pictures and tables is made by a run, and what is committed is
//! what a run makes.
#![cfg(all(feature = "cpu", feature = "cli"))]

mod common;

use assert_cmd::cargo::cargo_bin;
use common::committed;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn lookback(arguments: &[&str]) -> Output {
    Command::new(cargo_bin("lookback")).args(arguments).output().expect("it starts")
}

fn made(folder: &Path) -> String {
    let output = lookback(&["lesson", "--output", folder.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(folder.join("index.html")).expect("a page")
}

#[test]
fn the_page_has_everything_without_a_script_and_is_the_same_each_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = made(folder.path());
    assert!(!page.contains("lesson:"), "a marker is left");
    let pictures = ["shuffle", "sklansky", "brent-kung", "blelloch"].map(|pattern| format!("id=\"inside-{pattern}\""));
    assert!(pictures.iter().all(|picture| page.contains(picture)) && page.contains("id=\"tiles\""));
    // Sixteen steps of three strategies, and six faults access by access, unfold by themselves.
    assert_eq!(page.matches("<details><summary>step ").count(), 16);
    assert_eq!(page.matches("lookback stress --replay 'mutant=").count(), 6);
    // Where one picture is not drawn into the page it is there beside it.
    for beside in ["inside-hillis-steele.svg", "inside-kogge-stone.svg"] {
        assert!(folder.path().join(beside).is_file() && page.contains(beside));
    }
    let again = tempfile::tempdir().expect("a folder");
    assert!(made(again.path()) == page);
    // Over what it has made itself, but over nothing else.
    assert!(made(folder.path()) == page);
    fs::write(folder.path().join("tiles.svg"), "mine").expect("it is written");
    let refused = lookback(&["lesson", "--output", folder.path().to_str().expect("UTF-8")]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(fs::read(folder.path().join("tiles.svg")).expect("it is there"), b"mine");
}

/// Whether the kernels were compiled by GCC. Which of two arguments is loaded first is the compiler's choice, and interleavings
/// differ by it.
fn is_by_gcc() -> bool {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let said = Command::new(compiler).arg("--version").output();
    said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains("Free Software Foundation"))
}

#[test]
fn what_is_committed_is_what_runs_make() {
    let Some(kept) = committed("docs/lesson") else { return };
    if !is_by_gcc() {
        println!("skipped: what is committed was made with kernels that GCC compiled");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    made(folder.path());
    let mut compared = 0;
    for entry in fs::read_dir(folder.path()).expect("a folder") {
        let name = entry.expect("an entry").file_name();
        let [kept, made] = [kept.join(&name), folder.path().join(&name)].map(|path| fs::read(path).expect("a file"));
        assert!(kept == made, "{} differs: lookback lesson --output docs/lesson", name.display());
        compared += 1;
    }
    assert_eq!(compared, 8);
    let document = kept.with_file_name("lesson.md");
    let reports = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports");
    let check = lookback(&[
        "report",
        "--splice",
        document.to_str().expect("UTF-8"),
        reports.to_str().expect("UTF-8"),
        "--check",
    ]);
    assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&check.stderr));
}
