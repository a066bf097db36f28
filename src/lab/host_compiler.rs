//! The C++ compiler of this machine, asked at run time: for the program under ThreadSanitizer, and for kernels of problems
//! that the build left out.
//!
//! What it makes is kept under the SHA-256 of the sources, the options and what the compiler says of itself, so a changed
//! kernel never meets an old product. Behind that stands the SHA-256 of the product itself: one that was damaged is not
//! used but removed and made anew.

use super::workers::on_threads;
use crate::kernels::sources::for_host;
use crate::text::hexadecimal;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{ErrorKind, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a compiler may take to say what it is.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// How long a compiler may take for one file.
const COMPILE_TIME: Duration = Duration::from_secs(900);
/// The most that a kept product may have.
const PRODUCT_BYTES: u64 = 1 << 30;

/// Why a compiler made nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HostCompilerError {
    /// No compiler.
    #[error("no C++ compiler for {purpose} (tried {tried}); install g++, or set CXX")]
    NoCompiler {
        /// What it is wanted for.
        purpose: &'static str,
        /// The commands that were tried.
        tried: String,
    },
    /// None of the compilers makes anything with the options that are needed.
    #[error("'{compiler}' makes nothing with {options}: {output}")]
    NotAble {
        /// The first of them.
        compiler: String,
        /// With which it was asked for a program that does nothing.
        options: String,
        /// What it said.
        output: String,
    },
    /// A source does not compile: a fault of ours, or a compiler too old for C++17.
    #[error("'{compiler}' cannot compile {file}: {output}")]
    Compile {
        /// The compiler.
        compiler: String,
        /// What it was given.
        file: String,
        /// What it said.
        output: String,
    },
    /// The product cannot be written.
    #[error("{purpose} cannot be kept in {}: {reason}; set LOOKBACK_CACHE_DIR to a folder that can be written", folder.display())]
    Folder {
        /// What it is wanted for.
        purpose: &'static str,
        /// Where it was to be kept.
        folder: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A compiler could not be started or waited for.
    #[error("the C++ compiler for {purpose}: {reason}")]
    Process {
        /// What it is wanted for.
        purpose: &'static str,
        /// Why not.
        reason: String,
    },
}

/// What is made.
pub(crate) struct Recipe {
    /// In words: "no C++ compiler for …", "… cannot be kept in".
    pub purpose: &'static str,
    /// The kind of things in the cache.
    pub kind: &'static str,
    /// For every file.
    pub options: &'static [&'static str],
    /// The longest to compile first.
    pub units: Vec<Unit>,
    /// For the linker.
    pub link_options: &'static [&'static str],
}

/// One translation unit, beside the folder `cuda` with the sources.
pub(crate) struct Unit {
    pub name: String,
    pub text: String,
    pub options: &'static [&'static str],
}

/// What was made.
#[derive(Debug)]
pub(crate) struct Product {
    pub path: PathBuf,
    /// What made it, in its own words.
    pub compiler: String,
    /// The folder of what is not kept.
    _temporary: Option<tempfile::TempDir>,
}

/// What a process wrote and how it ended.
pub(crate) struct Ended {
    pub output: String,
    pub errors: String,
    /// Nothing if it was killed at the time limit.
    pub status: Option<ExitStatus>,
}

/// Runs a process on this input until it ends or its time is over.
pub(crate) fn execute(command: &mut Command, input: &str, time_limit: Duration) -> Result<Ended, std::io::Error> {
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
        Ok(String::from_utf8_lossy(&crate::file::read_up_to(file, PRODUCT_BYTES)?).into_owned())
    };
    Ok(Ended { output: text(&mut output)?, errors: text(&mut errors)?, status })
}

/// The whole product that is kept under a key, if there is one. What is damaged under the key is removed.
fn kept(folder: &Path, key: &str) -> Option<PathBuf> {
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let name = entry.file_name();
        let Some(digest) = name.to_str().and_then(|name| name.strip_prefix(key)?.strip_prefix('-')) else { continue };
        let path = entry.path();
        let bytes = crate::file::read(&path, PRODUCT_BYTES);
        if bytes.is_ok_and(|bytes| hexadecimal(&Sha256::digest(bytes)) == digest) && is_executable(&path) {
            return Some(path);
        }
        // What cannot be removed stands in nobody's way: the new one has another name, or replaces it.
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

/// What the first compiler that answers says of itself, or that none does.
pub(crate) fn compiler_in_words() -> String {
    let compiler = HostCompiler::candidates().find_map(Result::ok);
    compiler.map_or_else(
        || format!("none (tried {}); install g++, or set CXX", HostCompiler::commands().join(", ")),
        |compiler| compiler.words().to_owned(),
    )
}

impl Recipe {
    /// The product as it is kept, or made now. One that cannot be kept where things are kept is none's but this process's.
    pub fn make(&self) -> Result<Product, HostCompilerError> {
        let (folder, temporary) = match crate::kernels::cache::folder(self.kind) {
            Some(folder) => (folder, None),
            None => {
                let temporary = tempfile::tempdir().map_err(|error| self.process_error(&error))?;
                (temporary.path().to_owned(), Some(temporary))
            }
        };
        let mut refusal = None;
        // Else each compiler seems to be missing.
        let temporary_file = tempfile::tempfile();
        temporary_file.map_err(|error| HostCompilerError::Process {
            purpose: self.purpose,
            reason: format!(
                "no temporary file can be made ({}); set TMPDIR to a folder that can be written",
                crate::file::reason(&error)
            ),
        })?;
        for compiler in HostCompiler::candidates() {
            let compiler = compiler.map_err(|error| self.process_error(&error))?;
            let path = match kept(&folder, &compiler.key(self)) {
                Some(path) => path,
                // The next compiler may have what this one lacks.
                None => match compiler.build(self, &folder) {
                    Err(error @ HostCompilerError::NotAble { .. }) => {
                        refusal.get_or_insert(error);
                        continue;
                    }
                    built => built?,
                },
            };
            return Ok(Product { path, compiler: compiler.words().to_owned(), _temporary: temporary });
        }
        let tried = HostCompiler::commands().join(", ");
        Err(refusal.unwrap_or(HostCompilerError::NoCompiler { purpose: self.purpose, tried }))
    }

    fn folder_error(&self, folder: &Path, error: &std::io::Error) -> HostCompilerError {
        let reason = crate::file::reason(error);
        HostCompilerError::Folder { purpose: self.purpose, folder: folder.to_owned(), reason }
    }

    fn process_error(&self, error: &std::io::Error) -> HostCompilerError {
        HostCompilerError::Process { purpose: self.purpose, reason: crate::file::reason(error) }
    }
}

/// A C++ compiler that answers.
struct HostCompiler {
    /// As it would stand in CXX, for example "ccache g++".
    command: String,
    /// What it says of itself.
    version: String,
}

impl HostCompiler {
    /// The first line of what it says of itself.
    fn words(&self) -> &str {
        self.version.lines().next().unwrap_or(&self.command)
    }

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

    /// Those that answer; an error where it is the system that lets none answer.
    fn candidates() -> impl Iterator<Item = std::io::Result<Self>> {
        Self::commands().into_iter().filter_map(|command| {
            let ended = match execute(Self::invoke(&command).arg("--version"), "", ANSWER_TIME) {
                Ok(ended) => ended,
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => return None,
                Err(error) => return Some(Err(error)),
            };
            ended.status?.success().then_some(Ok(Self { version: ended.output, command }))
        })
    }

    fn invoke(command: &str) -> Command {
        let mut words = command.split_whitespace();
        let program = Path::new(words.next().unwrap_or_default());
        // It runs in other folders than the one that the user starts from.
        let is_below = program.is_relative() && program.components().count() > 1;
        let program = is_below.then(|| std::path::absolute(program).ok()).flatten().unwrap_or(program.to_owned());
        let mut invocation = Command::new(program);
        invocation.args(words);
        invocation
    }

    /// The name of what this compiler makes of it.
    fn key(&self, recipe: &Recipe) -> String {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            // With its length, so that no two lists of texts run into one.
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        add(&self.command);
        add(&self.version);
        for options in [recipe.options, recipe.link_options] {
            add(&options.join("\n"));
        }
        for (name, text) in for_host() {
            add(name);
            add(text);
        }
        for unit in &recipe.units {
            add(&unit.name);
            add(&unit.text);
            add(&unit.options.join("\n"));
        }
        hexadecimal(&hash.finalize())
    }

    /// Compiles and links in a folder of its own inside `folder`, puts the product there, and says where it is.
    fn build(&self, recipe: &Recipe, folder: &Path) -> Result<PathBuf, HostCompilerError> {
        let folder_error = |error: std::io::Error| recipe.folder_error(folder, &error);
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
        let words = |lists: &[&[&str]]| -> Vec<String> { lists.concat().into_iter().map(str::to_owned).collect() };
        let link = |objects: &[&str], product| words(&[recipe.link_options, objects, &["-o", product]]);
        std::fs::write(root.join("empty.cpp"), "int main() {}\n").map_err(folder_error)?;
        self.execute(recipe, root, "empty.cpp", &link(&["empty.cpp"], "empty"), "empty").map_err(
            |error| match error {
                HostCompilerError::Compile { compiler, output, .. } => {
                    HostCompilerError::NotAble { compiler, options: recipe.link_options.join(" "), output }
                }
                other => other,
            },
        )?;
        for unit in &recipe.units {
            std::fs::write(root.join(&unit.name), &unit.text).map_err(folder_error)?;
        }
        let object_of = |unit: &Unit| unit.name.replace(".cpp", ".o");
        let next = AtomicUsize::new(0);
        let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(recipe.units.len());
        let compiled = on_threads(workers, || -> Result<(), HostCompilerError> {
            while let Some(unit) = recipe.units.get(next.fetch_add(1, Ordering::Relaxed)) {
                let arguments = words(&[recipe.options, unit.options, &["-c", &unit.name]]);
                self.execute(recipe, root, &unit.name, &arguments, &object_of(unit))?;
            }
            Ok(())
        });
        compiled.into_iter().collect::<Result<(), _>>()?;
        let objects: Vec<String> = recipe.units.iter().map(object_of).collect();
        let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
        self.execute(recipe, root, recipe.purpose, &link(&objects, "product"), "product")?;
        let product = root.join("product");
        let digest = hexadecimal(&Sha256::digest(std::fs::read(&product).map_err(folder_error)?));
        let path = folder.join(format!("{}-{digest}", self.key(recipe)));
        std::fs::rename(product, &path).map_err(folder_error)?;
        Ok(path)
    }

    /// Lets it make `product` of a file in the folder.
    fn execute(
        &self,
        recipe: &Recipe,
        folder: &Path,
        file: &str,
        arguments: &[String],
        product: &str,
    ) -> Result<(), HostCompilerError> {
        let ended = execute(Self::invoke(&self.command).args(arguments).current_dir(folder), "", COMPILE_TIME)
            .map_err(|error| recipe.process_error(&error))?;
        let output = match ended.status {
            Some(status) if status.success() && folder.join(product).is_file() => return Ok(()),
            Some(status) if status.success() => "it says that all is well, and has written nothing".to_owned(),
            Some(_) => ended.errors.trim().to_owned(),
            None => format!("it did not end within {} s", COMPILE_TIME.as_secs()),
        };
        Err(HostCompilerError::Compile { compiler: self.command.clone(), file: file.to_owned(), output })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Recipe =
        Recipe { purpose: "a test", kind: "test", options: &[], units: Vec::new(), link_options: &["-shared"] };

    #[test]
    fn a_compiler_that_is_not_able_is_told_from_a_fault_of_ours() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let compiler = HostCompiler { command: String::from("false"), version: String::new() };
        let error = compiler.build(&NOTHING, folder.path()).expect_err("'false' compiles nothing");
        assert!(matches!(&error, HostCompilerError::NotAble { compiler, .. } if compiler == "false"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn a_compiler_that_writes_nothing_is_not_able() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let compiler = HostCompiler { command: String::from("true"), version: String::new() };
        let error = compiler.build(&NOTHING, folder.path()).expect_err("'true' writes nothing");
        assert!(matches!(&error, HostCompilerError::NotAble { compiler, .. } if compiler == "true"), "{error}");
        assert!(error.to_string().ends_with("has written nothing"), "{error}");
    }

    #[test]
    fn a_folder_that_is_none_is_told_once_and_in_words() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let compiler = HostCompiler { command: String::from("false"), version: String::new() };
        let error = compiler.build(&NOTHING, file.path()).expect_err("it is a file");
        assert!(std::error::Error::source(&error).is_none(), "its reason is in its text");
        let error = error.to_string();
        assert_eq!(error.matches("exists").count(), 1, "{error}");
        assert!(!error.contains("os error") && error.contains("to a folder that can be written"), "{error}");
    }

    /// A compiler that makes a program which answers, in an instant.
    #[cfg(unix)]
    fn quick_compiler(folder: &Path) -> HostCompiler {
        let script = folder.join("compiler");
        let text = "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = -o ] && target=$2; shift; done\n\
                    [ -n \"$target\" ] && printf '#!/bin/sh\\necho ready\\n' > \"$target\" && chmod +x \"$target\"\nexit 0\n";
        write_executable(&script, text);
        HostCompiler { command: script.display().to_string(), version: String::from("1") }
    }

    #[cfg(unix)]
    fn write_executable(path: &Path, text: &str) {
        std::fs::write(path, text).expect("a file");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, executable).expect("executable");
    }

    #[cfg(unix)]
    #[test]
    fn a_compiler_is_found_from_the_folder_that_the_user_starts_in() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let compiler = quick_compiler(place.path());
        let steps = std::env::current_dir().expect("a folder").components().count();
        // As many steps up as lead to the root.
        let command = format!("{}{}", "../".repeat(steps), compiler.command.trim_start_matches('/'));
        let compiler = HostCompiler { command, ..compiler };
        compiler.build(&NOTHING, &place.path().join("cache")).expect("it compiles");
    }

    #[cfg(unix)]
    #[test]
    fn a_damaged_product_is_never_used_and_is_made_anew() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let compiler = quick_compiler(place.path());
        let folder = place.path().join("cache");
        let key = compiler.key(&NOTHING);
        let whole = compiler.build(&NOTHING, &folder).expect("it compiles");
        let text = std::fs::read_to_string(&whole).expect("a program");
        assert_eq!(kept(&folder, &key), Some(whole.clone()));
        for damaged in ["", &text[..text.len() - 1], "#!/bin/sh\nsleep 1000\n"] {
            write_executable(&whole, damaged);
            assert_eq!(kept(&folder, &key), None, "{damaged}");
            assert!(!whole.exists(), "{damaged}");
            assert_eq!(compiler.build(&NOTHING, &folder).expect("it compiles again"), whole);
            assert_eq!(kept(&folder, &key), Some(whole.clone()));
        }
        // Whole, and nobody may start it; or no file at all.
        std::fs::set_permissions(&whole, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("permissions");
        assert_eq!(kept(&folder, &key), None);
        std::os::unix::fs::symlink("/dev/zero", &whole).expect("a link");
        assert_eq!(kept(&folder, &key), None);
        compiler.build(&NOTHING, &folder).expect("it compiles again");
        assert_eq!(kept(&folder, &key), Some(whole));
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
