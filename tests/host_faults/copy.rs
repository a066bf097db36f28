//! A copy of what the tests with a fault are built from, in a folder of cargo's for tests. Files that do not change keep
//! their time, so that cargo builds again only what a fault touches.

use super::files_below;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What the library and tests/driver.rs are made of.
const PARTS: [&str; 7] = ["src", "cuda", "tuning", "tests/driver", "tests/driver.rs", "build.rs", "Cargo.lock"];
/// What of the tests' own dependencies those of the library need. With all of them the first build takes longer than
/// everything else.
const OF_TESTS: [&str; 1] = ["proptest"];

/// The copy, and the programs of its tests.
pub struct Copy {
    pub root: PathBuf,
    build: PathBuf,
}

/// How a test ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    Passed,
    /// Where, and with what.
    Failed(String),
    TookTooLong,
}

impl Copy {
    /// Makes it, or what is there the same as the tree again.
    pub fn new(tree: &Path) -> std::io::Result<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("host_faults");
        let copy = Self { root: folder.join("tree"), build: folder.join("build") };
        let mut wanted = BTreeSet::new();
        for part in PARTS.map(|part| tree.join(part)) {
            for file in if part.is_dir() { files_below(&part) } else { vec![part] } {
                let below = file.strip_prefix(tree).expect("found below it").to_owned();
                // Cargo leaves out of this one what the copy does not need.
                if below != Path::new("Cargo.lock") || !copy.root.join(&below).exists() {
                    copy.write(&below, &std::fs::read(&file)?)?;
                }
                wanted.insert(below);
            }
        }
        let manifest = std::fs::read_to_string(tree.join("Cargo.toml"))?;
        copy.write(Path::new("Cargo.toml"), without_other_tests(&manifest).as_bytes())?;
        wanted.insert(PathBuf::from("Cargo.toml"));
        for file in files_below(&copy.root) {
            if !wanted.contains(file.strip_prefix(&copy.root).expect("found below it")) {
                std::fs::remove_file(file)?;
            }
        }
        Ok(copy)
    }

    /// Writes a file of the copy, unless it is so already.
    pub fn write(&self, below: &Path, bytes: &[u8]) -> std::io::Result<()> {
        let path = self.root.join(below);
        if std::fs::read(&path).is_ok_and(|is| is == bytes) {
            return Ok(());
        }
        std::fs::create_dir_all(path.parent().expect("it is in a folder"))?;
        std::fs::write(path, bytes)
    }

    /// Builds the tests' programs: by name, where each is.
    ///
    /// # Errors
    /// What the compiler says.
    pub fn build(&self, programs: &BTreeSet<&str>) -> Result<BTreeMap<String, PathBuf>, String> {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(&self.root).args(["test", "--no-run", "--quiet", "--message-format", "json"]);
        // Without the CPU device nothing is compiled but Rust.
        cargo.args(["--no-default-features", "--features", "cuda-13000", "--target-dir"]).arg(&self.build);
        for program in programs {
            match *program {
                "lib" => cargo.arg("--lib"),
                program => cargo.args(["--test", program]),
            };
        }
        cargo.env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_DEV_DEBUG", "0");
        // A fault may leave something unused.
        cargo.env("RUSTFLAGS", "--cap-lints allow").env_remove("CARGO_ENCODED_RUSTFLAGS");
        let made = cargo.output().map_err(|error| format!("cargo: {error}"))?;
        let messages = String::from_utf8_lossy(&made.stdout);
        let messages: Vec<Value> = messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if !made.status.success() {
            let rendered = messages.iter().filter_map(|message| message["message"]["rendered"].as_str());
            return Err(rendered.collect::<String>() + &String::from_utf8_lossy(&made.stderr));
        }
        let program = |message: &Value| {
            let is_library = message["target"]["kind"][0] == "lib";
            let name = if is_library { "lib" } else { message["target"]["name"].as_str()? };
            Some((name.to_owned(), PathBuf::from(message["executable"].as_str()?)))
        };
        Ok(messages.iter().filter_map(program).collect())
    }

    /// Runs one test of a program.
    pub fn run(&self, program: &Path, test: &str, limit: Duration) -> std::io::Result<End> {
        let start = Instant::now();
        let mut command = assert_cmd::Command::new(program);
        // A test that skips sees no fault.
        command.current_dir(&self.root).args(["--exact", test]).env("LOOKBACK_REQUIRE_CUDA_COMPILER", "1");
        let ended = command.timeout(limit).output()?;
        let said = String::from_utf8_lossy(&ended.stdout);
        let complained = String::from_utf8_lossy(&ended.stderr);
        if ended.status.success() {
            return Ok(if said.contains("1 passed") {
                End::Passed
            } else {
                End::Failed(format!("it has no test {test}"))
            });
        }
        if start.elapsed() >= limit {
            return Ok(End::TookTooLong);
        }
        let whole = [said, complained].concat();
        Ok(End::Failed(panic_of(&whole).unwrap_or_else(|| ended.status.to_string())))
    }
}

/// Where the harness says that a test panicked, and with what, in a line; nothing of a test that a signal ended.
fn panic_of(text: &str) -> Option<String> {
    const MOST: usize = 160;
    let (_, panic) = text.split_once(" panicked at ")?;
    let ends = ["\nnote:", "\nstack backtrace:", "\nfailures:"].iter().filter_map(|end| panic.find(end)).min();
    let words: Vec<&str> = panic[..ends.unwrap_or(panic.len())].split_whitespace().collect();
    let line: Vec<char> = words.join(" ").chars().collect();
    let text = |part: &[char]| part.iter().collect::<String>();
    // Begin and end say most.
    Some(if line.len() <= MOST {
        text(&line)
    } else {
        format!("{} … {}", text(&line[..MOST / 2]), text(&line[line.len() - MOST / 2..]))
    })
}

/// The manifest without the other tests, the examples, the benchmarks and what only they need.
fn without_other_tests(manifest: &str) -> String {
    let mut manifest: toml::Table = manifest.parse().expect("cargo has read it");
    for left_out in ["bench", "example"] {
        manifest.remove(left_out);
    }
    // A packed crate lists its tests.
    if let Some(toml::Value::Array(tests)) = manifest.get_mut("test") {
        tests.retain(|test| test.get("name").and_then(toml::Value::as_str) == Some("driver"));
    }
    if let Some(toml::Value::Table(dependencies)) = manifest.get_mut("dev-dependencies") {
        dependencies.retain(|name, _| OF_TESTS.contains(&name));
    }
    manifest.to_string()
}
