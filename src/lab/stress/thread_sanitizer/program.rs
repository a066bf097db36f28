//! The program: compiled, kept, started.
//!
//! It is kept under the SHA-256 of its sources, the options and what the compiler says of itself, so a changed kernel
//! never meets an old program. Behind that stands the SHA-256 of the program itself: one that was damaged is not started
//! but removed and compiled anew.

use super::job::{Job, ThreadSanitizerError};
use super::report::{self, Ending};
use crate::kernels::sources::for_host;
use crate::text::hexadecimal;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// For every file. The context of the running thread is one load away if the thread-local is resolved at link time;
/// line tables are what reports name lines from.
const OPTIONS: [&str; 6] =
    ["-std=c++17", "-g1", "-fno-exceptions", "-fno-rtti", "-ftls-model=initial-exec", "-DLOOKBACK_MUTANTS_AT_RUN_TIME"];

/// For the kernels. More optimisation takes longer to compile and saves little: most instructions are the sanitizer's.
const KERNEL_OPTIONS: [&str; 2] = ["-O1", "-fsanitize=thread"];

/// For the program around them: no call of memcpy or memset where none is written, because the sanitizer sees those.
const PROGRAM_OPTIONS: [&str; 2] = ["-O2", "-fno-builtin"];

/// The first race ends the process; a process that ends need not linger for others.
const SANITIZER_OPTIONS: &str = "halt_on_error=1:exitcode=66:atexit_sleep_ms=0:color=never";

/// How long the program may take to say that it is there, and a compiler to say what it is.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// How long a compiler may take for one file.
const COMPILE_TIME: Duration = Duration::from_secs(900);
/// The most that a kept program may have.
const PROGRAM_BYTES: u64 = 1 << 30;

const DEFINITION: &str = "#define LOOKBACK_THREAD_SANITIZER\n";

/// How it is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Plain,
    /// Without address space randomisation: some kernels put libraries where the sanitizer has its shadow.
    FixedAddresses,
}

/// A program that has answered.
#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    start: Start,
    /// ThreadSanitizer's own.
    pub(super) options: &'static str,
    /// What made it, in its own words.
    pub(super) compiler: String,
    /// The folder of a program that is not kept.
    _temporary: Option<tempfile::TempDir>,
}

/// What a process wrote and how it ended.
struct Ended {
    output: String,
    errors: String,
    /// Nothing if it was killed at the time limit.
    status: Option<ExitStatus>,
}

impl Program {
    pub(super) fn find() -> Result<Self, ThreadSanitizerError> {
        // Threads of one process had better wait for each other than compile the same program twice.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let (folder, temporary) = match crate::kernels::cache::folder("thread-sanitizer") {
            Some(folder) => (folder, None),
            None => {
                let temporary = tempfile::tempdir()?;
                (temporary.path().to_owned(), Some(temporary))
            }
        };
        let mut refusal = None;
        for compiler in Compiler::candidates() {
            let path = match kept(&folder, &compiler.key()) {
                Some(path) => path,
                // The next compiler may have what this one lacks.
                None => match compiler.build(&folder) {
                    Err(error @ ThreadSanitizerError::NoLibrary { .. }) => {
                        refusal.get_or_insert(error);
                        continue;
                    }
                    built => built?,
                },
            };
            let words = compiler.version.lines().next().unwrap_or(&compiler.command).to_owned();
            return Self::probe(path, words, temporary);
        }
        Err(refusal.unwrap_or_else(|| ThreadSanitizerError::NoCompiler { tried: Compiler::commands().join(", ") }))
    }

    /// Finds out how the program starts here.
    fn probe(
        path: PathBuf,
        compiler: String,
        temporary: Option<tempfile::TempDir>,
    ) -> Result<Self, ThreadSanitizerError> {
        let options = SANITIZER_OPTIONS;
        let mut program = Self { path, start: Start::Plain, options, compiler, _temporary: temporary };
        let mut said = String::new();
        for start in [Start::Plain, Start::FixedAddresses] {
            program.start = start;
            match program.execute("", ANSWER_TIME) {
                Ok(ended) if ended.output.trim() == "ready" => return Ok(program),
                Ok(ended) => said += &format!("{}{} ", ended.output, ended.errors),
                Err(error) => said += &format!("{error} "),
            }
        }
        Err(ThreadSanitizerError::CannotRun { output: said.trim().to_owned() })
    }

    /// How the jobs ended and the place of the one that this is about, as the program says it.
    pub(super) fn run(&self, jobs: &str, time_limit: Duration) -> Result<(Ending, usize), ThreadSanitizerError> {
        let ended = self.execute(jobs, time_limit)?;
        let status = match ended.status {
            None => format!("no verdict in {} s", time_limit.as_secs_f32()),
            Some(status) if status.success() => String::new(),
            Some(status) => format!("the program ended with {status}"),
        };
        report::parse(&ended.output, &ended.errors, &status)
    }

    fn execute(&self, jobs: &str, time_limit: Duration) -> Result<Ended, std::io::Error> {
        let mut command = match self.start {
            Start::Plain => Command::new(&self.path),
            Start::FixedAddresses => {
                let mut command = Command::new("setarch");
                command.arg(std::env::consts::ARCH).arg("-R").arg(&self.path);
                command
            }
        };
        execute(command.env("TSAN_OPTIONS", self.options), jobs, time_limit)
    }
}

/// Runs a process on this input until it ends or its time is over.
fn execute(command: &mut Command, input: &str, time_limit: Duration) -> Result<Ended, std::io::Error> {
    // Files, not pipes: what a process that is killed has started may hold a pipe open for ever, and a process that does
    // not read would let nobody write.
    let (mut given, mut output, mut errors) = (tempfile::tempfile()?, tempfile::tempfile()?, tempfile::tempfile()?);
    given.write_all(input.as_bytes())?;
    given.rewind()?;
    let mut child = command.stdin(given).stdout(output.try_clone()?).stderr(errors.try_clone()?).spawn()?;
    let deadline = Instant::now() + time_limit;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let text = |file: &mut File| -> Result<String, std::io::Error> {
        file.rewind()?;
        Ok(String::from_utf8_lossy(&crate::file::read_up_to(file, PROGRAM_BYTES)?).into_owned())
    };
    Ok(Ended { output: text(&mut output)?, errors: text(&mut errors)?, status })
}

/// The whole program that is kept under a key, if there is one. What is damaged under the key is removed.
fn kept(folder: &Path, key: &str) -> Option<PathBuf> {
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let name = entry.file_name();
        let Some(digest) = name.to_str().and_then(|name| name.strip_prefix(key)?.strip_prefix('-')) else { continue };
        let path = entry.path();
        let bytes = crate::file::read(&path, PROGRAM_BYTES);
        if bytes.is_ok_and(|bytes| hexadecimal(&Sha256::digest(bytes)) == digest) && is_executable(&path) {
            return Some(path);
        }
        // What cannot be removed stands in nobody's way: the new program has another name, or replaces it.
        let _ = std::fs::remove_file(&path);
    }
    None
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|file| file.permissions().mode() & 0o100 != 0)
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    true
}

/// A C++ compiler that answers.
struct Compiler {
    /// As it would stand in CXX, for example "ccache g++".
    command: String,
    /// What it says of itself.
    version: String,
}

impl Compiler {
    /// The commands worth trying: what the user says, what this program was built with, what is usually there.
    fn commands() -> Vec<String> {
        let mut commands: Vec<String> =
            std::env::var("CXX").ok().filter(|value| !value.trim().is_empty()).into_iter().collect();
        for command in [env!("LOOKBACK_HOST_COMPILER"), "g++", "clang++"] {
            if !commands.iter().any(|known| known == command) {
                commands.push(command.to_owned());
            }
        }
        commands
    }

    fn candidates() -> impl Iterator<Item = Self> {
        Self::commands().into_iter().filter_map(|command| {
            let ended = execute(Self::invoke(&command).arg("--version"), "", ANSWER_TIME).ok()?;
            ended.status?.success().then_some(Self { version: ended.output, command })
        })
    }

    fn invoke(command: &str) -> Command {
        let mut words = command.split_whitespace();
        let mut invocation = Command::new(words.next().unwrap_or_default());
        invocation.args(words);
        invocation
    }

    /// The name of the program that this compiler makes.
    fn key(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            // With its length, so that no two lists of texts run into one.
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        add(&self.command);
        add(&self.version);
        for options in [&OPTIONS[..], &KERNEL_OPTIONS, &PROGRAM_OPTIONS] {
            options.iter().for_each(|option| add(option));
        }
        for (name, text) in for_host() {
            add(name);
            add(text);
        }
        for unit in units() {
            add(&unit.name);
            add(&unit.text);
        }
        hexadecimal(&hash.finalize())
    }

    /// Compiles and links the program in a folder of its own inside `folder`, puts it there, and says where it is.
    fn build(&self, folder: &Path) -> Result<PathBuf, ThreadSanitizerError> {
        let folder_error = |error: std::io::Error| ThreadSanitizerError::Folder {
            folder: folder.to_owned(),
            reason: crate::file::reason(&error),
        };
        std::fs::create_dir_all(folder).map_err(folder_error)?;
        // In the same file system, because only there a rename is atomic.
        let workplace = tempfile::Builder::new().prefix("build-").tempdir_in(folder).map_err(folder_error)?;
        let root = workplace.path();
        for (name, text) in for_host() {
            let file = root.join("cuda").join(name);
            if let Some(parent) = file.parent() {
                std::fs::create_dir_all(parent).map_err(folder_error)?;
            }
            std::fs::write(file, text).map_err(folder_error)?;
        }
        std::fs::write(root.join("empty.cpp"), "int main() {}\n").map_err(folder_error)?;
        self.execute(root, "empty.cpp", &["-fsanitize=thread", "empty.cpp", "-o", "empty"]).map_err(
            |error| match error {
                ThreadSanitizerError::Compile { compiler, output, .. } => {
                    ThreadSanitizerError::NoLibrary { compiler, output }
                }
                other => other,
            },
        )?;
        let units = units();
        for unit in &units {
            std::fs::write(root.join(&unit.name), &unit.text).map_err(folder_error)?;
        }
        let next = AtomicUsize::new(0);
        let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(units.len());
        std::thread::scope(|scope| {
            let work = || -> Result<(), ThreadSanitizerError> {
                while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let arguments: Vec<&str> =
                        OPTIONS.iter().chain(unit.options).copied().chain(["-c", unit.name.as_str()]).collect();
                    self.execute(root, &unit.name, &arguments)?;
                }
                Ok(())
            };
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })?;
        let objects: Vec<String> = units.iter().map(|unit| unit.name.replace(".cpp", ".o")).collect();
        let mut arguments = vec!["-fsanitize=thread", "-o", "program"];
        arguments.extend(objects.iter().map(String::as_str));
        self.execute(root, "the program", &arguments)?;
        let program = root.join("program");
        let digest = hexadecimal(&Sha256::digest(std::fs::read(&program).map_err(folder_error)?));
        let path = folder.join(format!("{}-{digest}", self.key()));
        std::fs::rename(program, &path).map_err(folder_error)?;
        Ok(path)
    }

    fn execute(&self, folder: &Path, file: &str, arguments: &[&str]) -> Result<(), ThreadSanitizerError> {
        let ended = execute(Self::invoke(&self.command).args(arguments).current_dir(folder), "", COMPILE_TIME)?;
        if ended.status.is_some_and(|status| status.success()) {
            return Ok(());
        }
        let unfinished = format!("it did not end within {} s", COMPILE_TIME.as_secs());
        Err(ThreadSanitizerError::Compile {
            compiler: self.command.clone(),
            file: file.to_owned(),
            output: if ended.status.is_none() { unfinished } else { ended.errors.trim().to_owned() },
        })
    }
}

/// One translation unit.
struct Unit {
    name: String,
    text: String,
    options: &'static [&'static str],
}

fn units() -> Vec<Unit> {
    // The longest to compile first.
    let mut units = Vec::new();
    let mut instances = String::from("#define LOOKBACK_INSTANCES(EACH)");
    for (number, (element, operator)) in Job::INSTANCES.into_iter().enumerate() {
        let operator = operator.cuda_type(element);
        let text = format!(
            "{DEFINITION}#define LOOKBACK_PROBLEM ::lookback::plain<{operator}>\n#define LOOKBACK_BODIES lookback_bodies_{number}\n\
             #include \"cuda/host/instantiate.cpp\"\n"
        );
        units.push(Unit { name: format!("kernels_{number}.cpp"), text, options: &KERNEL_OPTIONS });
        instances += &format!(" EACH({operator}, lookback_bodies_{number})");
    }
    for (name, file) in [("program.cpp", "thread_sanitizer/program.cpp"), ("runtime.cpp", "runtime.cpp")] {
        // A namespace of its own: the linker keeps one of two functions that have the same name, and that of a kernel
        // must be the instrumented one.
        let text = format!(
            "{DEFINITION}{instances}\n#define lookback lookback_uninstrumented\n#include \"cuda/host/{file}\"\n"
        );
        units.push(Unit { name: name.to_owned(), text, options: &PROGRAM_OPTIONS });
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_without_the_library_is_told_from_a_fault_of_ours() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let compiler = Compiler { command: String::from("false"), version: String::new() };
        let error = compiler.build(folder.path()).expect_err("'false' compiles nothing");
        assert!(matches!(&error, ThreadSanitizerError::NoLibrary { compiler, .. } if compiler == "false"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn a_folder_that_is_none_is_told_once_and_in_words() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let compiler = Compiler { command: String::from("false"), version: String::new() };
        let error = compiler.build(file.path()).expect_err("it is a file");
        assert!(std::error::Error::source(&error).is_none(), "its reason is in its text");
        let error = error.to_string();
        assert_eq!(error.matches("exists").count(), 1, "{error}");
        assert!(!error.contains("os error") && error.contains("to a folder that can be written"), "{error}");
    }

    /// A compiler that makes a program which answers, in an instant.
    #[cfg(unix)]
    fn quick_compiler(folder: &Path) -> Compiler {
        let script = folder.join("compiler");
        let text = "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = -o ] && target=$2; shift; done\n\
                    [ -n \"$target\" ] && printf '#!/bin/sh\\necho ready\\n' > \"$target\" && chmod +x \"$target\"\nexit 0\n";
        write_executable(&script, text);
        Compiler { command: script.display().to_string(), version: String::from("1") }
    }

    #[cfg(unix)]
    fn write_executable(path: &Path, text: &str) {
        std::fs::write(path, text).expect("a file");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, executable).expect("executable");
    }

    #[cfg(unix)]
    #[test]
    fn a_damaged_program_is_never_started_and_is_made_anew() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let compiler = quick_compiler(place.path());
        let folder = place.path().join("cache");
        let whole = compiler.build(&folder).expect("it compiles");
        let text = std::fs::read_to_string(&whole).expect("a program");
        assert_eq!(kept(&folder, &compiler.key()), Some(whole.clone()));
        for damaged in ["", &text[..text.len() - 1], "#!/bin/sh\nsleep 1000\n"] {
            write_executable(&whole, damaged);
            assert_eq!(kept(&folder, &compiler.key()), None, "{damaged}");
            assert!(!whole.exists(), "{damaged}");
            assert_eq!(compiler.build(&folder).expect("it compiles again"), whole);
            assert_eq!(kept(&folder, &compiler.key()), Some(whole.clone()));
        }
        // Whole, and nobody may start it; or no file at all.
        std::fs::set_permissions(&whole, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("permissions");
        assert_eq!(kept(&folder, &compiler.key()), None);
        std::os::unix::fs::symlink("/dev/zero", &whole).expect("a link");
        assert_eq!(kept(&folder, &compiler.key()), None);
        let again = compiler.build(&folder).expect("it compiles again");
        let program = Program::probe(again, String::from("quick"), None).expect("it answers");
        assert_eq!(program.start, Start::Plain);
    }

    #[cfg(unix)]
    #[test]
    fn a_process_that_does_not_end_is_given_up_with_whatever_it_has_started() {
        let start = Instant::now();
        // The shell's child outlives it and holds its streams; neither reads what is more than a pipe takes.
        let mut command = Command::new("sh");
        command.args(["-c", "echo begun; sleep 20; true"]);
        let input = "x".repeat(1 << 20);
        let ended = execute(&mut command, &input, Duration::from_millis(300)).expect("it was started");
        assert!(ended.status.is_none());
        assert_eq!(ended.output, "begun\n");
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    }

    #[test]
    fn the_embedded_sources_include_no_file_that_is_not_embedded() {
        for (name, text) in for_host() {
            for line in text.lines() {
                let Some(included) = line.strip_prefix("#include \"").and_then(|rest| rest.split('"').next()) else {
                    continue;
                };
                let mut parts: Vec<&str> = name.split('/').collect();
                parts.pop();
                for part in included.split('/') {
                    if part == ".." {
                        parts.pop();
                    } else {
                        parts.push(part);
                    }
                }
                let target = parts.join("/");
                // The GPU's half of an `#if`.
                assert!(
                    target.starts_with("gpu/") || for_host().any(|(known, _)| known == target),
                    "{name} includes {target}"
                );
            }
        }
    }
}
