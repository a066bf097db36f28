//! The program end to end, on the CPU device.
#![cfg(all(feature = "cli", feature = "cpu"))]

mod common;

use assert_cmd::cargo::cargo_bin;
use common::committed;
use lookback::element::{ElementType, Instance, Operator};
use lookback::lab::measure::record::{Opened, Status, SweepRecord, SweepRecorder};
use lookback::strategy::StrategyChoice;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(cargo_bin!("lookback"));
    command.args(words).env_remove("RUST_BACKTRACE").stdin(Stdio::null());
    command
}

fn run(words: &[&str]) -> Output {
    command(words).output().expect("the program starts")
}

fn compare(words: &[&str]) -> Output {
    run(&[&["compare", "--device", "cpu"], words].concat())
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("UTF-8")
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("UTF-8")
}

fn json(directory: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(directory.join("data.json")).unwrap()).unwrap()
}

/// The record that `compare` prints; everything in it is right.
#[track_caller]
fn compared(words: &[&str]) -> serde_json::Value {
    let output = compare(&[words, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A refusal: the exit code, one message that says `word`, and no panic.
#[track_caller]
fn assert_refused(output: &Output, code: i32, word: &str) {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
    assert!(stderr(output).contains(word), "'{word}' is not in: {}", stderr(output));
    assert!(!stderr(output).contains("panicked"), "{}", stderr(output));
}

/// Kernels that are made ahead lie in a folder, whole, and the second run mends what was damaged.
#[cfg(feature = "cuda")]
#[test]
fn kernels_are_made_ahead_and_what_cannot_be_made_is_an_error() {
    if common::compiler("kernels_are_made_ahead_and_what_cannot_be_made_is_an_error").is_none() {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary folder");
    let folder = place.path().join("not/there/yet");
    // A handful of kernels.
    let kernels = |architectures: &str, output: &Path, element: &str| {
        let output = output.to_str().expect("temporary folders have plain names");
        let words = ["--output", output, "--types", element, "--modes", "inclusive", "--quiet"];
        command(&[&["kernels", "--architectures", architectures], &words[..]].concat())
            .env("LOOKBACK_CACHE_DIR", place.path().join("cache"))
            .output()
            .expect("the program starts")
    };
    let made = || -> BTreeMap<_, _> {
        let files = fs::read_dir(&folder).expect("it was made").map(|file| file.expect("a file").path());
        files.map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
    };
    let says_how_many = |output: &Output| {
        assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
        let (said, count) = (stdout(output), made().len());
        assert!(count > 2 && said.starts_with(&format!("{count} kernels for sm_90 in ")), "{count} files, {said}");
    };
    says_how_many(&kernels("9.0", &folder, "u64"));
    let first = made();
    let (damaged, whole) = first.first_key_value().expect("kernels");
    fs::write(damaged, &whole[..whole.len() / 2]).expect("it can be written");
    says_how_many(&kernels("9.0", &folder, "u64"));
    assert!(made() == first, "the second run writes the same");

    assert_refused(&kernels("9", &folder, "u64"), 2, "MAJOR.MINOR, such as 9.0");
    assert_refused(&kernels("9.0", &folder, "bicyclic-pair"), 2, "no operator asked for is defined on a type");
    assert_refused(&kernels("3.5", &folder, "u64"), 1, "not for sm_35");
    assert_refused(&kernels("9.0", &damaged.join("below a file"), "u64"), 2, "choose a folder that can be written");
    assert!(made() == first, "what is refused leaves the folder as it is");
}

#[test]
fn help_fits_80_columns_and_names_the_exit_codes() {
    for words in
        [&["--help"][..], &["compare", "--help"], &["info", "--help"], &["report", "--help"], &["compare", "-h"]]
    {
        let output = command(words).env("COLUMNS", "200").output().unwrap();
        assert!(output.status.success());
        for line in stdout(&output).lines() {
            assert!(line.chars().count() <= 80, "{words:?}: {line}");
        }
    }
    assert!(stdout(&run(&["--help"])).contains("3  no device or no compiler"));
}

#[test]
fn every_strategy_is_compared_in_a_table_of_80_columns() {
    let output = compare(&["--sizes", "0,1,33,1000", "--modes", "inclusive,exclusive"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table = stdout(&output);
    for strategy in StrategyChoice::ALL.iter().map(|choice| choice.name()) {
        // Behind the name of auto stands what it came to.
        let first = |line: &str| line.split_whitespace().next().map(|word| word.trim_end_matches(':').to_owned());
        let rows = table.lines().filter(|line| first(line).as_deref() == Some(strategy)).count();
        let headings = if strategy == "auto" { 1 } else { 0 };
        assert_eq!(rows, 8 + headings, "{strategy} in\n{table}");
    }
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let results = 8 * StrategyChoice::ALL.len();
    assert!(table.contains(&format!("{results} results, each verified in every element: all right")), "{table}");
    assert!(!table.contains("GB/s"), "no GPU figure on the CPU device");
}

#[test]
fn costs_are_moves_by_definition_and_as_counted_kept_and_spliced() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("costs-cpu.json");
    let words = ["costs", "--device", "cpu", "--sizes", "4096", "--output", kept.to_str().unwrap()];
    let output = run(&words);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table = stdout(&output);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let cells = |strategy: &str| {
        let line = table.lines().find(|line| line.split_whitespace().next() == Some(strategy));
        line.unwrap_or_else(|| panic!("{strategy} is not in {table}")).split_whitespace().collect::<Vec<_>>()
    };
    // Behind the name: VT, block, launches, moves by definition, and what was counted.
    let [_, _, _, launches, defined, counted] = cells("lookback")[..] else { panic!("{table}") };
    assert_eq!((launches, defined, counted), ("1", "2n", "2.000"));
    let [_, _, launches, .., counted] = cells("hillis-steele")[..] else { panic!("{table}") };
    assert_eq!((launches, counted), ("12", "35.000"), "3 · 12 − 4095 / 4096 moves an element");
    assert!(!table.contains("DRAM"), "no GPU figure on the CPU device");
    // What is kept says the same again, goes into a document, and is not overwritten.
    let again = run(&["report", kept.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert!(table.ends_with(stdout(&again)), "{}", stdout(&again));
    assert_refused(&run(&words), 2, "is there already and is not replaced");
    assert_refused(&run(&["costs", "--output", "no/such/folder/costs-a.json"]), 2, "make the folder");
    assert_refused(&run(&["costs", "--output", "mine.json"]), 2, "choose such a name");
    let damaged = fs::read_to_string(&kept).unwrap().replace("\"mismatches\": 0", "\"mismatches\": 1");
    fs::write(&kept, damaged).unwrap();
    assert_refused(&run(&["report", kept.to_str().unwrap()]), 2, "row 1");
}

#[test]
fn every_instance_is_right() {
    let rows = |words: &[&str]| {
        let output = compare(&[words, &["--sizes", "1000", "--modes", "all", "--format", "csv"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let lines: Vec<&str> = stdout(&output).lines().collect();
        assert!(lines[0].starts_with("strategy,element,operator,mode,"));
        lines.len() - 1
    };
    // Of what the build has every strategy; a kernel that it left out takes a second or two.
    let is_built_in = |element: ElementType, operator: Operator| {
        Instance::new(element, operator).is_ok_and(|instance| instance.is_built_in())
    };
    let names: Vec<String> = ElementType::SCANNED
        .iter()
        .filter(|&&element| is_built_in(element, Operator::Max) || !ElementType::NUMBERS.contains(&element))
        .map(ToString::to_string)
        .collect();
    let operators: Vec<String> =
        Operator::ALL.iter().filter(|&&operator| operator != Operator::Product).map(ToString::to_string).collect();
    let built_in = rows(&["--types", &names.join(","), "--operators", &operators.join(",")]);
    assert!(built_in > 500, "{built_in} rows");
    let others = ["--strategies", "lookback", "--types", "i8,i16,f32", "--operators", "sum,product,max,xor"];
    let others = rows(&others);
    assert!(others > 20, "{others} rows");
}

#[test]
fn output_leaves_data_plots_and_page_and_report_renders_them_again() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("new/folder");
    let words = ["--sizes", "256,1000,4096", "--vts", "1,4", "--quiet", "--output", folder.to_str().unwrap()];
    let output = compare(&words);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    let files = || -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap());
        entries.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap())).collect()
    };
    let before = files();
    for name in ["data.csv", "data.json", "index.html", "moves-by-vt-u32-sum-inclusive.svg"] {
        assert!(before.contains_key(name), "{name} is not among {:?}", before.keys());
    }
    let page = fs::read_to_string(folder.join("index.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("src=\"http") && !page.contains("<script"));
    for name in before.keys() {
        if name.ends_with(".svg") || name.ends_with(".html") || name.ends_with(".csv") {
            fs::remove_file(folder.join(name)).unwrap();
        }
    }
    assert_eq!(run(&["report", folder.to_str().unwrap()]).status.code(), Some(0));
    assert_eq!(files(), before, "the same data give the same bytes");
}

#[test]
fn problems_are_run_recorded_resumed_and_drawn_apart() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("problems");
    let folder = folder.to_str().unwrap();
    let words = |problems: &'static str, last: &'static str| {
        let words = ["--strategies", "lookback,naive", "--types", "f32", "--problem", problems, "--sizes", "256,1024"];
        [&words[..], &["--modes", "inclusive,exclusive", "--quiet", "--output", folder, last]].concat()
    };
    let words = |problems, last| words(problems, last).into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>();
    let first = compare(&words("flat,rows", ""));
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    assert!(stdout(&first).contains("\nf32 sum, rows of 256, exclusive\n"), "{}", stdout(&first));
    assert!(stdout(&first).contains("12 results, each verified in every element: all right"), "{}", stdout(&first));
    assert_eq!(json(Path::new(folder))["rows"].as_array().unwrap().len(), 12);
    // What is there is not run again, and a problem more is.
    let second = compare(&words("flat,rows,recurrence", "--resume"));
    assert_eq!(second.status.code(), Some(0), "{}", stderr(&second));
    let record = json(Path::new(folder));
    let rows = record["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 16);
    assert_eq!(stdout(&second).matches("  ok\n").count(), 4, "{}", stdout(&second));
    let recurrence = &rows[15];
    assert_eq!((&recurrence["problem"], &recurrence["operator"]), (&"recurrence".into(), &serde_json::Value::Null));
    let csv = fs::read_to_string(Path::new(folder).join("data.csv")).unwrap();
    let names: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert_eq!(names[names.len() - 3..], ["problem", "input_element", "segment_elements"]);
    assert_eq!(csv.lines().filter(|line| line.ends_with(",rows,,256")).count(), 4, "{csv}");
    // A curve is of one problem.
    for name in ["moves-by-size-f32-sum-inclusive.svg", "moves-by-size-f32-sum-rows-of-256-inclusive.svg"] {
        let plot = fs::read_to_string(Path::new(folder).join(name)).unwrap();
        assert_eq!(plot.matches("data-series=\"lookback\"").count(), 1, "{name}");
    }
    let page = fs::read_to_string(Path::new(folder).join("index.html")).unwrap();
    assert!(page.contains("f32 recurrence, exclusive") && page.contains("f32 sum, rows of 256 by naive"));
}

#[test]
fn columns_and_segments_between_offsets_are_run_recorded_resumed_and_drawn_apart() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("problems");
    let folder = folder.to_str().unwrap();
    let words = ["--strategies", "lookback,reduce-then-scan", "--types", "i32", "--modes", "inclusive,exclusive"];
    let words = [&words[..], &["--quiet", "--output", folder]].concat();
    let columns = ["--problem", "columns,recurrence-columns", "--shape", "300x7,7x300"];
    let first = compare(&[&words[..], &columns].concat());
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    assert!(stdout(&first).contains("\ni32 sum, columns of 300, exclusive\n"), "{}", stdout(&first));
    assert!(stdout(&first).contains("8 results, each verified in every element: all right"), "{}", stdout(&first));
    let offsets = ["--problem", "offsets", "--run-length", "3,61", "--sizes", "2100", "--resume"];
    let second = compare(&[&words[..], &offsets].concat());
    assert_eq!(second.status.code(), Some(0), "{}", stderr(&second));
    let third = compare(&[&words[..], &offsets].concat());
    assert_eq!(stdout(&third).matches("  ok\n").count(), 0, "{}", stdout(&third));
    let record = json(Path::new(folder));
    let configurations: Vec<_> = record["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| [&row["problem"], &row["segment_elements"], &row["strategy"], &row["mode"]].map(ToString::to_string))
        .collect();
    assert_eq!(configurations.len(), 16);
    assert_eq!(configurations.iter().collect::<BTreeSet<_>>().len(), 16, "{configurations:?}");
    let csv = fs::read_to_string(Path::new(folder).join("data.csv")).unwrap();
    for (end, lines) in [(",columns,,300", 2), (",recurrence-columns,,7", 2), (",offsets,,3", 4), (",offsets,,61", 4)] {
        assert_eq!(csv.lines().filter(|line| line.ends_with(end)).count(), lines, "{end}: {csv}");
    }
    let page = fs::read_to_string(Path::new(folder).join("index.html")).unwrap();
    for name in [
        "i32 sum, columns of 7, inclusive",
        "i32 recurrence, columns of 300, exclusive",
        "i32 sum, by offsets in segments of 61",
    ] {
        assert!(page.contains(name), "{name}");
    }
    assert!(page.contains("i32 sum, columns of 300 by reduce-then-scan"), "what is left out is said");
}

#[test]
fn shapes_and_runs_without_a_problem_that_has_them_are_refused() {
    let one = ["--strategies", "lookback", "--sizes", "100"];
    let refused = |words: &[&str], says: &str| assert_refused(&compare(&[words, &one[..2]].concat()), 2, says);
    refused(&["--shape", "4x4"], "none of the problems scans rows or columns");
    refused(&["--problem", "offsets", "--shape", "4x4"], "none of the problems scans rows or columns");
    refused(&["--problem", "offsets", "--run-length", "0"], "at least 1 element");
    refused(&["--problem", "columns", "--run-length", "4"], "none of the problems has runs");
    refused(&["--problem", "columns", "--sizes", "1000"], "no whole columns of 256; name rows and columns by --shape");
    refused(&["--problem", "recurrence-columns", "--shape", "0x4"], "at least 1 element each; say how many by --shape");
    refused(&["--problem", "rows", "--shape", "4y4"], "ROWSxCOLUMNS");
    refused(&["--problem", "rows", "--run-length", "4"], "none of the problems has runs");
    refused(&["--problem", "by-key", "--run-length", "0"], "at least 1 element");
    refused(&["--problem", "recurrence", "--operators", "max"], "none of the problems has an operator");
    refused(&["--problem", "sideways"], "reverse-recurrence");
    refused(&["--problem", "rows", "--sizes", "1000"], "no whole rows of 256");
    refused(&["--problem", "rows", "--shape", "2x2", "--sizes", "4"], "cannot be used with");
    let naive = ["--problem", "reverse", "--strategies", "naive"];
    assert_refused(&compare(&naive), 2, "the strategy 'naive' scans one array of numbers, not u32 sum, reversed");
}

#[test]
fn machine_formats_are_alone_on_stdout() {
    let words = ["--sizes", "100", "--strategies", "lookback,naive"];
    let record = compared(&words);
    assert_eq!(record["rows"].as_array().unwrap().len(), 2);
    assert_eq!(record["rows"][0]["strategy"], "lookback");
    assert_eq!(record["rows"][0]["element_moves_per_element"], 2.0);
    assert_eq!(record["rows"][0]["verified"], true);
    let output = compare(&[&words[..], &["--format", "csv"]].concat());
    assert_eq!(stdout(&output).lines().count(), 3);
}

#[test]
fn sizes_are_bytes_where_they_are_written_in_bytes() {
    let words = ["--strategies", "sequential", "--types", "u16,f64", "--sizes", "8KiB,8Ki,2KiB-1,10^3"];
    let record = compared(&words);
    let of = |element: &str| -> Vec<u64> {
        let rows = record["rows"].as_array().unwrap().iter().filter(|row| row["element"] == element);
        rows.map(|row| row["n"].as_u64().unwrap()).collect()
    };
    assert_eq!(of("u16"), [1000, 1023, 4096, 8192]);
    assert_eq!(of("f64"), [255, 1000, 1024, 8192]);
}

#[test]
fn a_seed_gives_one_result() {
    let rows = || {
        let mut record = compared(&["--sizes", "5000", "--vts", "1", "--seed", "7"]);
        for row in record["rows"].as_array_mut().unwrap() {
            row["executor_seconds"].take();
        }
        record["rows"].take()
    };
    assert_eq!(rows(), rows());
}

#[test]
fn what_is_left_out_is_said() {
    let output = compare(&["--sizes", "2^15", "--strategies", "naive,lookback"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("skipped naive above n = 2^14"), "{}", stdout(&output));
    assert_refused(&compare(&["--sizes", "2^15", "--strategies", "naive"]), 2, "nothing is left to run");
}

#[test]
fn bad_arguments_are_refused_with_the_choices() {
    assert_refused(&compare(&["--strategies", "lookforward"]), 2, "reduce-then-scan");
    assert_refused(&compare(&["--sizes", "2^x"]), 2, "write a size as");
    assert_refused(&compare(&["--sizes", "8KiB-2000", "--types", "u64"]), 2, "at least 0 elements");
    for size in ["2^45", "2^99", "1e30"] {
        assert_refused(&compare(&["--sizes", size]), 2, "at most 2^44 elements");
    }
    assert_refused(&compare(&["--vts", "65"]), 2, "from 1 to 64");
    assert_refused(&compare(&["--blocks", "33"]), 2, "multiple of 32");
    assert_refused(&compare(&["--types", "f32", "--operators", "and"]), 2, "not defined on f32");
    for word in ["auto", "cpu", "cuda"] {
        assert_refused(&run(&["compare", "--device", "abacus"]), 2, word);
    }
    assert_refused(&compare(&["--input", "x.npy", "--sizes", "5"]), 2, "--sizes");
    assert_refused(&run(&[]), 2, "Usage");
    let runs = run(&["stress", "--runs", "64KiB"]);
    assert_refused(&runs, 2, "write a number as");
    assert!(!stderr(&runs).contains("in bytes"), "{}", stderr(&runs));
    let runs = run(&["stress", "--runs", "2^63"]);
    assert_refused(&runs, 2, "a number is at most 2^44");
    assert!(!stderr(&runs).contains("elements"), "{}", stderr(&runs));
}

#[test]
#[cfg(target_os = "linux")]
fn a_help_that_cannot_be_written_is_an_error() {
    for word in ["--help", "--version"] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let child = command(&[word]).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        assert_refused(&child.wait_with_output().unwrap(), 2, "cannot write to stdout");
    }
    let mut child = command(&["--help"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_refused(&child.wait_with_output().unwrap(), 0, "");
}

#[test]
fn a_combination_that_cannot_run_is_skipped_with_its_reason() {
    let words =
        ["--sizes", "100", "--strategies", "sequential,lookback", "--pattern", "shuffle", "--composition", "block"];
    let output = compare(&words);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("works inside a warp"), "{}", stdout(&output));
}

#[test]
fn files_are_scanned() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let mut npy = b"\x93NUMPY\x01\x00\x46\x00".to_vec();
    npy.extend(format!("{:<69}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 20), }").as_bytes());
    npy.extend((0..100).flat_map(|index| (index as f32).to_le_bytes()));
    fs::write(at("good.npy"), &npy).unwrap();
    let record = compared(&["--input", &at("good.npy")]);
    assert!(record["rows"].as_array().unwrap().iter().all(|row| row["n"] == 100 && row["element"] == "f32"));

    fs::write(at("cut.npy"), &npy[..300]).unwrap();
    assert_refused(&compare(&["--input", &at("cut.npy")]), 2, "cut off");
    let big_endian: Vec<u8> = npy.iter().map(|&byte| if byte == b'<' { b'>' } else { byte }).collect();
    fs::write(at("big.npy"), big_endian).unwrap();
    assert_refused(&compare(&["--input", &at("big.npy")]), 2, "big-endian");
    let fortran = String::from_utf8_lossy(&npy[10..80]).replace("False", "True ");
    let mut file = npy[..10].to_vec();
    file.extend(fortran.as_bytes());
    file.extend(&npy[80..]);
    fs::write(at("fortran.npy"), file).unwrap();
    assert_refused(&compare(&["--input", &at("fortran.npy")]), 2, "ascontiguousarray");
    assert_refused(&compare(&["--input", &at("good.npy"), "--types", "u32"]), 2, "f32");
    assert_refused(&compare(&["--input", &at("missing.npy")]), 2, "missing.npy");
    assert_refused(&compare(&["--input", directory.path().to_str().unwrap()]), 2, "cannot read");

    fs::write(at("raw.bin"), [1; 400]).unwrap();
    assert_refused(&compare(&["--input", &at("raw.bin")]), 2, "--types");
    assert_eq!(compare(&["--input", &at("raw.bin"), "--types", "u64"]).status.code(), Some(0));
    fs::write(at("empty.bin"), []).unwrap();
    assert_eq!(compare(&["--input", &at("empty.bin"), "--types", "u8"]).status.code(), Some(0));
}

#[test]
fn an_array_on_which_the_operator_is_not_associative_is_refused_and_no_result_is_called_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let scan = |name: &str, element: &str, values: &[u32]| {
        let path = directory.path().join(name);
        fs::write(&path, values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>()).unwrap();
        compare(&["--input", path.to_str().unwrap(), "--types", element, "--strategies", "sequential,hillis-steele"])
    };
    let wraps = scan("b3.bin", "bicyclic-pair", &[0, u32::MAX, 0, 2, 5, 0]);
    assert_refused(&wraps, 2, "not associative on this array: exponents reach 2^32");
    let joins = scan("i3.bin", "index-interval", &[1, 5, 6, 0, 9, 9]);
    assert_refused(&joins, 2, "not associative on this array: intervals join");
    for (name, element) in [("b2.bin", "bicyclic-pair"), ("i2.bin", "index-interval")] {
        let fits = scan(name, element, &[0, u32::MAX, 0, 0, 7, 7]);
        assert_eq!(fits.status.code(), Some(0), "{}", stderr(&fits));
    }
}

#[test]
fn the_scanned_array_is_saved_where_one_configuration_runs() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("input.bin"), [3_u32, 1, 4, 1, 5].map(u32::to_le_bytes).concat()).unwrap();
    let words = ["--input", &at("input.bin"), "--types", "u32", "--strategies", "lookback", "--save-output"];
    let read = |name: &str| {
        let array = lookback::cli::input::read(Path::new(&at(name)), None).unwrap();
        array.bytes.chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect::<Vec<_>>()
    };
    let save = |name: &str, more: &[&str]| compare(&[&words[..], &[&at(name)], more].concat());
    for (name, more, saved) in [
        ("inclusive.npy", &[][..], [3, 4, 8, 9, 14]),
        ("exclusive.npy", &["--modes", "exclusive"], [0, 3, 4, 8, 9]),
        ("in-place.npy", &["--in-place", "--operators", "max"], [3, 3, 4, 4, 5]),
    ] {
        let output = save(name, more);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).contains(name));
        assert_eq!(read(name), saved);
    }
    // What is there stays, whatever is asked for.
    assert_refused(&save("inclusive.npy", &["--modes", "exclusive"]), 2, "is there already");
    assert_eq!(read("inclusive.npy"), [3, 4, 8, 9, 14]);
    assert_refused(&save("input.bin", &[]), 2, "let it end in .npy");
    assert_refused(
        &save("more.npy", &["--modes", "inclusive,exclusive"]),
        2,
        "takes one configuration, and 2 would run",
    );
    assert_refused(&save("none/more.npy", &[]), 2, "in a folder that is not there");
    for end in ["/", "/."] {
        assert_refused(&save(&format!("more.npy{end}"), &[]), 2, "is the name of a folder");
    }
    assert_refused(&save("more.npy", &["--resume", "--output", &at("results")]), 2, "--resume");
    let intervals = ["--operators", "intervals", "--strategies", "lookback", "--sizes", "10", "--save-output"];
    assert_refused(&compare(&[&intervals[..], &[&at("more.npy")]].concat()), 2, "choose a type of numbers");
    assert_refused(&run(&["compare", "--sweep", "targets", "--save-output", &at("more.npy")]), 2, "--save-output");
    assert!(!Path::new(&at("more.npy")).exists());
}

#[test]
fn patterns_and_compositions_are_columns_of_one_table() {
    let words = ["--pattern", "all", "--composition", "all", "--sizes", "1000", "--strategies", "lookback,sequential"];
    let output = compare(&words);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let headings = stdout(&output).lines().filter(|line| line.starts_with("pattern       composition"));
    assert_eq!(headings.count(), 2, "{}", stdout(&output));
    assert!(stdout(&output).lines().all(|line| line.chars().count() <= 80), "{}", stdout(&output));
    assert!(stdout(&output).contains("\nbrent-kung    reduce-then-scan "), "{}", stdout(&output));
}

#[test]
fn unusable_folders_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let below = file.join("folder");
    assert_refused(&compare(&["--sizes", "10", "--output", below.to_str().unwrap()]), 2, "cannot make the folder");
    assert_refused(&run(&["report", directory.path().to_str().unwrap()]), 2, "holds no record");
    let none_such = directory.path().join("none-such");
    assert_refused(&run(&["report", none_such.to_str().unwrap()]), 2, "cannot read");
    assert!(!none_such.exists(), "a folder that is read is not made");
    fs::write(directory.path().join("data.json"), "{\"header\": {\"format\": 1}, \"rows\"").unwrap();
    assert_refused(&run(&["report", directory.path().to_str().unwrap()]), 2, "not what this program writes");
}

#[test]
fn a_run_that_is_killed_leaves_its_finished_rows() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().to_str().unwrap();
    let words = ["--sizes", "2^12,2^13,2^14,2^18,2^19,2^20,2^21,2^22", "--vts", "1,2,3,4,5,6,7,8", "--output", folder];
    let mut child = command(&[&["compare", "--device", "cpu"], &words[..]].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let partial = directory.path().join("data.partial.jsonl");
    let deadline = Instant::now() + Duration::from_secs(60);
    let lines = || fs::read(&partial).map_or(0, |text| text.iter().filter(|&&byte| byte == b'\n').count());
    while lines() < 5 {
        assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none(), "five lines while it runs");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let finished = lines();
    assert_eq!(run(&["report", folder]).status.code(), Some(0));
    let record = json(directory.path());
    let kept = record["rows"].as_array().unwrap().len() + record["skipped"].as_array().unwrap().len();
    assert_eq!(kept + 1, finished);
    assert!(!partial.exists() && directory.path().join("index.html").exists());
}

#[test]
#[cfg(unix)]
fn a_reader_that_has_read_enough_is_no_error() {
    let mut child = command(&["compare", "--device", "cpu", "--sizes", "2^12,2^13,2^14"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!stderr(&output).contains("error") && !stderr(&output).contains("panicked"), "{}", stderr(&output));
}

/// Whatever is on the other end of stderr, the exit code is that of what happened.
#[test]
#[cfg(unix)]
fn a_stderr_that_is_closed_is_no_panic() {
    for words in [
        &["compare", "--device", "cpu", "--strategies", "auto", "--sizes", "2^44", "-q"][..],
        &["compare", "--record", "x", "--sizes", "10"],
        &["compare", "--sizes", "2^x"],
        &["tune", "--output", "x", "--from", "none-such"],
    ] {
        let mut child = command(words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(2), "{words:?}");
    }
}

#[test]
fn options_of_targets_are_refused_where_strategies_are_run_and_the_other_way_round() {
    for size in [&["--sizes", "10"][..], &[]] {
        for (words, says) in [
            (&["--verbose"][..], "--verbose lists the figures"),
            (&["--record", "x"], "--record LIST is judged by targets"),
        ] {
            let output = compare(&[&["--strategies", "lookback"], size, words].concat());
            assert_refused(&output, 2, says);
            assert!(stderr(&output).contains("--sweep targets") && !stderr(&output).contains("Usage"));
        }
    }
    let Some(record) = committed("reports/targets-h200.jsonl.gz") else { return };
    let judge = |words: &[&str]| {
        let start = ["compare", "--sweep", "targets", "--record", record.to_str().unwrap()];
        run(&[&start[..], words].concat())
    };
    assert_refused(&judge(&["--tuning", "x"]), 2, "--tuning has no effect on it");
    assert_refused(&judge(&["--device", "cuda"]), 2, "leave out --device");
    assert_refused(&judge(&["--device", "cpu"]), 2, "leave out --device");
    assert_refused(&run(&["compare", "--sweep", "targets", "--resume"]), 2, "--output DIR");
    assert_refused(&run(&["compare", "--sweep", "targets", "--resident-blocks", "3"]), 2, "--resident-blocks");
}

#[test]
fn an_option_that_has_no_effect_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let x = directory.path().join("x");
    let x = x.to_str().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["compare", "--device", "cpu", "--schedule", "fair", "--preemption", "0.5"], "no warp is interrupted"),
        (&["compare", "--device", "cpu", "--samples", "3"], "--samples has no effect here"),
        (&["compare", "--device", "cuda", "--schedule", "random"], "--device cpu goes by it"),
        (&["compare", "--device", "gpu", "--preemption", "0.5"], "--preemption has no effect here"),
        (&["compare", "--device", "cuda", "--block-order", "reverse"], "--block-order has no effect here"),
        (&["compare", "--device", "cuda", "--resident-blocks", "3"], "--resident-blocks has no effect here"),
        (&["compare", "--device", "cuda", "--input", "x.npy", "--seed", "3"], "--seed has no effect here"),
        (&["compare", "--strategies", "lookback,naive", "--tuning", "x"], "only auto goes by a table"),
        (&["compare", "--strategies", "auto", "--vts", "8"], "auto takes what its tuning table says"),
        (&["compare", "--strategies", "naive,sequential", "--vts", "8"], "--vts has no effect here"),
        (&["compare", "--strategies", "sequential", "--blocks", "64"], "--blocks has no effect here"),
        (&["compare", "--strategies", "naive", "--pattern", "all"], "--pattern has no effect here"),
        (&["compare", "--strategies", "auto", "--composition", "all"], "--composition has no effect here"),
        (&["compare", "--strategies", "reduce-then-scan", "--descriptor", "split"], "--descriptor has no effect here"),
        (&["compare", "--strategies", "blelloch", "--tile-order", "static"], "--tile-order has no effect here"),
        (&["costs", "--problem", "rows"], "--problem has no effect here"),
        (&["costs", "--in-place"], "--in-place has no effect here"),
        (&["costs", "--samples", "3"], "--samples has no effect here"),
        (&["costs", "--format", "json"], "--format has no effect here"),
        (&["sweep", "--output", x], "NAME|FILE"),
        (&["sweep", "--tuning", x], "NAME|FILE"),
        (&["sweep", "--dry-run"], "NAME|FILE"),
        (&["sweep", "--ordinal", "1"], "NAME|FILE"),
        (&["sweep", "quick", "--resume"], "--output"),
        (&["sweep", "quick", "--dry-run", "--output", x], "--output"),
        (&["sweep", "quick", "--dry-run", "--ordinal", "1"], "--ordinal"),
        (&["sweep", "quick", "--dry-run", "--resume"], "--resume"),
        (&["sweep", "--quiet"], "NAME|FILE"),
        (&["sweep", "selftest", "--output", x], "--output has no effect here"),
        (&["sweep", "selftest", "--dry-run"], "--dry-run has no effect here"),
        (&["sweep", "selftest", "--tuning", x], "--tuning has no effect here"),
        (&["sweep", "seeds", "--dry-run", "--tuning", x], "the sweep has none"),
        (&["stress", "--list-mutants", "--runs", "5"], "--runs"),
        (&["stress", "--list-mutants", "--format", "json"], "--format"),
        (&["stress", "--replay", "x", "--runs", "5"], "--runs"),
        (&["stress", "--replay", "x", "--mutants"], "--mutants"),
        (&["stress", "--replay", "x", "--device", "cuda"], "--device has no effect here"),
        (&["stress", "--replay", "x", "--seconds", "1"], "--seconds has no effect here"),
        (&["stress", "--replay", "x", "--format", "json"], "--format has no effect here"),
        (&["stress", "--replay", "gpu-stress-1", "--replay-lines", "5"], "--replay-lines has no effect here"),
        (&["stress", "--replay-lines", "5"], "--replay"),
        (&["stress", "--device", "cuda", "--memory", "both"], "--memory has no effect here"),
        (&["stress", "--device", "gpu", "--threads", "2"], "--threads has no effect here"),
        (&["stress", "--mutants", "--memory", "weak"], "--memory"),
        (&["stress", "--mutants", "--detectors", "weak-memory", "--device", "cuda"], "--device"),
        (&["stress", "--mutant", "x", "--detectors", "weak-memory"], "--detectors has no effect here"),
        (&["stress", "--mutant", "x", "--output", x], "--output has no effect here"),
        (&["stress", "--list-mutants", "--add", x], "--add has no effect here"),
        (&["stress", "--replay", "x", "--detectors", "loom", "--output", x], "--detectors has no effect here"),
        (&["stress", "--replay", "gpu-stress-1", "--device", "cpu"], "--device has no effect here"),
        (&["stress", "--mutants", "--replay-lines", "5"], "--replay-lines has no effect here"),
        (&["report", "--check", x], "--splice"),
        (&["tune", "--from", x, "--output", "y", "--quick"], "--quick"),
    ];
    for (words, says) in cases {
        assert_refused(&run(words), 2, says);
    }
    assert!(!Path::new(x).exists());
}

/// The operating system's numbers and the names of Rust's errors are no reasons.
#[test]
#[cfg(unix)]
fn what_the_operating_system_refuses_is_said_in_words() {
    // A folder whose own name does not look like a temporary file's.
    let folder = tempfile::Builder::new().prefix("folder").tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("file"), "in the way").unwrap();
    for (words, says) in [
        (&["compare", "--input", &path("none")][..], "cannot read"),
        (&["compare", "--device", "cpu", "--output", &path("file/below")], "cannot make the folder"),
        (&["compare", "--device", "cpu", "--output", "/proc/none/below"], "cannot make the folder"),
        (&["compare", "--device", "cpu", "--tuning", &path("none")], "no such file or directory"),
        (&["report", &path("none")], "no such file or directory"),
        (&["report", &path("file/below")], "not a directory"),
        (&["report", "--splice", &path("none")], "no such file or directory"),
        (&["sweep", &path("file/below")], "not a directory"),
        (&["tune", "--from", &path("none"), "--output", &path("table.toml")], "no such file or directory"),
        (&["stress", "--mutants", "--add", &path("none")], "no such file or directory"),
        (&["compare-records", &path("none"), &path("none")], "no such file or directory"),
    ] {
        let output = run(words);
        assert_refused(&output, 2, says);
        for word in ["os error", "uncategorized", ".tmp"] {
            assert!(!stderr(&output).contains(word), "{words:?}: {}", stderr(&output));
        }
    }
}

#[test]
fn a_wrong_result_weighs_more_than_a_missed_target() {
    let Some(committed) = committed("reports/targets-h200.jsonl.gz") else { return };
    let mut record = SweepRecord::read(&committed).unwrap();
    // So that targets are missed for certain.
    record.rows.retain(|row| row.subject != "auto" || row.n > 1 << 20);
    let judge = |record: &SweepRecord| {
        let folder = tempfile::tempdir().unwrap();
        let Opened::Recorder(mut recorder) = SweepRecorder::open(folder.path(), &record.header, false).unwrap() else {
            panic!("the folder was empty");
        };
        for row in &record.rows {
            recorder.row(row.clone()).unwrap();
        }
        run(&["compare", "--sweep", "targets", "--record", recorder.path().to_str().unwrap()])
    };
    let output = judge(&record);
    assert_eq!(output.status.code(), Some(4), "{}{}", stdout(&output), stderr(&output));
    record.rows.last_mut().unwrap().status = Status::Wrong;
    let output = judge(&record);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stdout(&output).contains("MISS") && stdout(&output).contains("WRONG"), "{}", stdout(&output));
}

#[test]
#[cfg(unix)]
fn a_system_without_temporary_files_is_not_one_without_compilers() {
    let case = "thread-sanitizer mutant=none,strategy=chained,type=u32,operator=sum,mode=inclusive,layout=packed-64,\
                pattern=shuffle,composition=scan-then-propagate,vt=2,threads=64,in-place=true,input-offset=0,\
                output-offset=0,n=1281,order=ticket,memory=weak,seed=0,resident=2,blocks=in-order,preemption=20,\
                plain-points=false,launches=2,epochs=0,workspace=zeros";
    let output = command(&["stress", "--replay", case]).env("TMPDIR", "/nonexistent").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("set TMPDIR") && !said.contains("install g++"), "{said}");
}

#[test]
fn without_a_gpu_a_measuring_command_says_what_helps_and_no_device_that_it_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (words, helps) in [
        (&["compare", "--sweep", "targets"][..], "--record FILE judges a record"),
        (&["sweep", "quick", "--output", &path("sweep")], "lookback compare --device cpu"),
        (&["sweep", "selftest"], "lookback compare --device cpu"),
        (&["tune", "--output", &path("table.toml")], "lookback compare --device cpu"),
    ] {
        let output = command(words).env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
        assert_refused(&output, 3, helps);
        assert!(stderr(&output).contains("needs an NVIDIA GPU"), "{}", stderr(&output));
        assert!(!stderr(&output).contains("use the CPU device"), "{}", stderr(&output));
        // `--device` is an option of compare alone.
        assert!(!stderr(&output).contains("; --device cpu"), "{}", stderr(&output));
    }
    let output = command(&["compare", "--device", "cuda"]).env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
    if cfg!(feature = "cuda") {
        assert_refused(&output, 3, "--device cpu");
        let Some(table) = committed("reports/h100/mutants-h100.json") else { return };
        let table = fs::read_to_string(table).unwrap();
        let mut cases = table.split("--replay '").filter_map(|rest| rest.split('\'').next());
        let case = cases.find(|case| case.starts_with("gpu-stress")).unwrap();
        let output = command(&["stress", "--device", "cuda", "--replay", case])
            .env("CUDA_VISIBLE_DEVICES", "")
            .output()
            .unwrap();
        assert_refused(&output, 3, "on a machine that has one");
        assert!(!stderr(&output).contains("--device cpu"), "{}", stderr(&output));
    }
}

#[test]
#[cfg(unix)]
fn a_file_that_cannot_be_written_is_named_as_the_user_named_it() {
    use std::os::unix::fs::PermissionsExt;
    // A folder whose own name does not look like a temporary file's.
    let folder = tempfile::Builder::new().prefix("folder").tempdir().unwrap();
    let Some(record) = committed("tuning/tune-h200.jsonl.gz") else { return };
    // Not there, which stops the superuser, too.
    let missing = folder.path().join("none-such/table.toml");
    let output = run(&["tune", "--from", record.to_str().unwrap(), "--output", missing.to_str().unwrap()]);
    assert_refused(&output, 2, "none-such");
    assert!(!stderr(&output).contains(".tmp"), "{}", stderr(&output));
    let locked = folder.path().join("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).unwrap();
    if fs::write(locked.join("probe"), "").is_err() {
        let mut command = command(&["tune", "--from", record.to_str().unwrap(), "--output", "table.toml"]);
        let output = command.current_dir(&locked).output().unwrap();
        assert_refused(&output, 2, "cannot write into .: permission denied");
        assert!(!stderr(&output).contains(".tmp"), "{}", stderr(&output));
    }
}

#[test]
fn info_says_what_is_there_and_what_is_missing() {
    let output = run(&["info"]);
    assert_eq!(output.status.code(), Some(0));
    for word in ["lookback", "CPU device", "CUDA device"] {
        assert!(stdout(&output).contains(word), "{}", stdout(&output));
    }
}

#[test]
fn a_device_that_is_not_there_has_its_own_exit_code() {
    if stdout(&run(&["info"])).contains("compute capability") {
        println!("skipped: this machine has a GPU");
        return;
    }
    let output = run(&["compare", "--device", "cuda", "--sizes", "10"]);
    assert_refused(&output, 3, "CUDA");
}

#[test]
fn what_compares_nothing_is_an_error_that_says_what_would_fit() {
    let too_small = ["--strategies", "lookback", "--types", "u64", "--descriptor", "packed-64", "--sizes", "1000"];
    let no_room = ["--strategies", "lookahead", "--types", "f64", "--vts", "64", "--blocks", "1024", "--sizes", "1000"];
    let patterns = ["--strategies", "lookback", "--pattern", "shuffle", "--composition", "block", "--sizes", "1000"];
    let folder = tempfile::tempdir().unwrap();
    for (words, hint) in [
        (&too_small[..], "'packed-128' or 'split'"),
        (&no_room, "choose up to 896"),
        (&patterns, "choose another pattern"),
        (&["--strategies", "naive", "--sizes", "2^30"], "nothing is left to run"),
    ] {
        let output = folder.path().join("results");
        for more in [&[][..], &["--output", output.to_str().unwrap()], &["--format", "json"]] {
            assert_refused(&compare(&[words, more].concat()), 2, hint);
        }
        assert!(!output.join("data.json").exists());
    }
}

#[test]
#[cfg(unix)]
fn a_name_of_any_bytes_is_a_name() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join(std::ffi::OsStr::from_bytes(b"results-\xff"));
    let mut compare =
        command(&["compare", "--device", "cpu", "--sizes", "100", "--strategies", "lookback", "--output"]);
    let compared = compare.arg(&output).output().unwrap();
    assert_eq!(compared.status.code(), Some(0), "{}", stderr(&compared));
    assert_eq!(json(&output)["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn no_run_takes_rows_from_another_or_overwrites_what_it_did_not_make() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let run_into = |folder: &Path, words: &[&str]| {
        compare(&[&["--strategies", "lookback", "--output", folder.to_str().unwrap()], words].concat())
    };
    let rows = |folder: &Path| json(folder)["rows"].as_array().unwrap().len();

    // A whole record stays, and is gone on with if it is asked for.
    let results = at("results");
    assert_eq!(run_into(&results, &["--sizes", "100,200"]).status.code(), Some(0));
    assert_refused(&run_into(&results, &["--sizes", "100"]), 2, "--resume");
    assert_eq!(rows(&results), 2);
    let resumed = run_into(&results, &["--sizes", "100,200,300", "--resume"]);
    assert_eq!(resumed.status.code(), Some(0), "{}", stderr(&resumed));
    assert_eq!(rows(&results), 3);
    assert_refused(&run_into(&results, &["--sizes", "400", "--resume", "--seed", "7"]), 2, "seed");
    assert_refused(&compare(&["--sizes", "100", "--resume"]), 2, "--output");

    // A size that is too large for the machine leaves nothing behind, and keeps no other from its page.
    #[cfg(target_os = "linux")]
    {
        let big = at("big");
        assert_refused(&run_into(&big, &["--sizes", "2^44"]), 2, "choose a smaller n");
        let (some, pages) = (run_into(&big, &["--sizes", "1000,2^44"]), "plots and page");
        assert_eq!(some.status.code(), Some(0), "{}", stderr(&some));
        assert!(
            stdout(&some).contains("skipped u32 sum at n = 2^44") && stderr(&some).contains(pages),
            "{}",
            stderr(&some)
        );
        assert_eq!(rows(&big), 1);
    }

    // Rows under other schedules belong to another run.
    let preempted = at("preempted");
    let schedule = ["--schedule", "random", "--preemption", "0.5"];
    assert_eq!(run_into(&preempted, &[&["--sizes", "100"], &schedule[..]].concat()).status.code(), Some(0));
    for (folder, other) in [
        (&results, &["--schedule", "fair"][..]),
        (&results, &["--block-order", "reverse"]),
        (&results, &["--resident-blocks", "7"]),
        (&preempted, &["--schedule", "random", "--preemption", "0.25"]),
    ] {
        let refused = run_into(folder, &[&["--sizes", "400", "--resume"][..], other].concat());
        assert_refused(&refused, 2, "setting of the device");
    }

    // So does what an interrupted run left: even nothing.
    let partial = results.join("data.partial.jsonl");
    fs::write(&partial, "").unwrap();
    assert_eq!(run(&["report", results.to_str().unwrap()]).status.code(), Some(0));
    assert_eq!(rows(&results), 3);
    let header = serde_json::json!({ "header": json(&results)["header"] });
    fs::write(&partial, format!("{header}\n")).unwrap();
    assert_refused(&run(&["report", results.to_str().unwrap()]), 2, "two runs");
    assert!(partial.exists() && rows(&results) == 3);

    // The files of others.
    for name in ["index.html", "data.csv"] {
        let folder = at(&format!("others-{name}"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(name), "mine").unwrap();
        assert_refused(&run_into(&folder, &["--sizes", "100"]), 2, "choose another folder");
        assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), "mine");
    }

    // What is no file of this program under a name of its own: never waited for, never written through.
    #[cfg(unix)]
    {
        let folder = at("pipe");
        fs::create_dir(&folder).unwrap();
        let pipe = Command::new("mkfifo").arg(folder.join("data.partial.jsonl")).status().unwrap();
        assert!(pipe.success());
        assert_refused(&run_into(&folder, &["--sizes", "100"]), 2, "a pipe");
        let folder = at("link");
        fs::create_dir(&folder).unwrap();
        fs::write(at("victim"), "").unwrap();
        std::os::unix::fs::symlink(at("victim"), folder.join("data.partial.jsonl")).unwrap();
        assert_refused(&run_into(&folder, &["--sizes", "100"]), 2, "is a link");
        assert_eq!(fs::read_to_string(at("victim")).unwrap(), "");
    }
    fs::write(results.join("data.csv"), "mine").unwrap();
    fs::remove_file(&partial).unwrap();
    assert_refused(&run(&["report", results.to_str().unwrap()]), 2, "data.csv");
    assert_eq!(fs::read_to_string(results.join("data.csv")).unwrap(), "mine");

    // Nothing is gone on with where a run has ended.
    let mut record = json(&results);
    record["rows"] = serde_json::json!([]);
    fs::write(results.join("data.json"), record.to_string()).unwrap();
    let empty = run(&["report", results.to_str().unwrap()]);
    assert_refused(&empty, 2, "finished run without results");
    assert!(!stderr(&empty).contains("--resume"));

    // Two at once.
    let busy = at("busy");
    fs::create_dir(&busy).unwrap();
    let lock = fs::File::open(&busy).unwrap();
    lock.lock().unwrap();
    assert_refused(&run_into(&busy, &["--sizes", "100"]), 2, "another lookback");
    drop(lock);
    assert_eq!(run_into(&busy, &["--sizes", "100"]).status.code(), Some(0));
}

#[test]
fn a_run_over_a_file_is_not_gone_on_with_when_the_file_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let scan = |numbers: [u32; 3], more: &[&str]| {
        fs::write(at("input.bin"), numbers.map(u32::to_le_bytes).concat()).unwrap();
        let words = ["--input", &at("input.bin"), "--types", "u32", "--output", &at("results"), "--strategies"];
        compare(&[&words, more].concat())
    };
    assert_eq!(scan([1, 2, 3], &["lookback"]).status.code(), Some(0));
    assert_refused(&scan([1, 2, 4], &["lookback,chained", "--resume"]), 2, "content of the input");
    assert_eq!(scan([1, 2, 3], &["lookback,chained", "--resume"]).status.code(), Some(0));
    let rows = json(Path::new(&at("results")))["rows"].clone();
    assert!(rows.as_array().unwrap().iter().any(|row| row["strategy"] == "chained"), "{rows}");
}

/// Six numbers of which (2 + 3) + 4 overflows and 2 + (3 + 4) does not.
fn overflowing_input(folder: &Path) -> String {
    let input = folder.join("overflowing.bin");
    let numbers = [1.0, 1.5e308, 1.5e308, -1.5e308, 1.0, 1.0_f64];
    std::fs::write(&input, numbers.map(f64::to_le_bytes).concat()).unwrap();
    input.to_str().unwrap().to_owned()
}

#[test]
fn an_overflow_that_depends_on_the_order_is_undecidable_and_not_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let input = overflowing_input(folder.path());
    let output = folder.path().join("results");
    let scan = |format: &str, more: &[&str]| {
        let words = ["--input", &input, "--types", "f64", "--format", format, "--quiet"];
        let output = compare(&[&words, more].concat());
        (output.status.code(), stdout(&output).to_owned())
    };
    let (code, text) = scan("table", &["--output", output.to_str().unwrap()]);
    assert_eq!(code, Some(5), "{text}");
    assert!(text.contains("undecidable: overflow depends on the order in"), "{text}");
    assert!(text.contains("results, none wrong, ") && !text.contains("WRONG"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(run(&["report", output.to_str().unwrap()]).status.code(), Some(5));
    let (code, json) = scan("json", &[]);
    assert_eq!(code, Some(5));
    assert!(json.contains("\"undecidable\": ") && json.contains("\"first_undecidable\": 3"), "{json}");
    let (_, csv) = scan("csv", &[]);
    assert!(csv.starts_with("strategy,") && csv.contains(",expected,actual,undecidable,first_undecidable,"), "{csv}");
}
