//! The kernel sources, embedded at build time, so that the program runs alone, and one flat source made of them: NVRTC
//! compiles it. Mutants are read from them, and the host's compiler compiles them for ThreadSanitizer.
//!
//! NVRTC finds an in-memory header by the very text of the `#include`, so `"../memory.cuh"` would have to
//! mean the same file everywhere. Resolving includes here, relative to the including file as a compiler
//! does on disk, has no such trap, and the flat text is also what a cached kernel's key is made of.
//! `#line` keeps the compiler's messages pointing at the real file and line.

use crate::element::{ElementType, Instance};
use crate::strategy::kernel::Kernel;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::OnceLock;

#[cfg(feature = "lab")]
include!(concat!(env!("OUT_DIR"), "/woven_sources.rs"));

// `KERNEL_SOURCES` and `HOST_SOURCES`, both `&[(&str, &str)]`, path below cuda/ and text, written by build.rs.
include!(concat!(env!("OUT_DIR"), "/kernel_sources.rs"));

/// Every embedded file that is not for the host alone: its path below `cuda/` and its text.
pub fn embedded() -> &'static [(&'static str, &'static str)] {
    KERNEL_SOURCES
}

/// The same with all faults and delays woven in, and what they are made of.
#[cfg(feature = "lab")]
pub fn woven() -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_woven = |name: &str| WOVEN_SOURCES.iter().any(|(woven, _)| *woven == name);
    KERNEL_SOURCES.iter().filter(move |(name, _)| !is_woven(name)).chain(WOVEN_SOURCES).copied()
}

/// What a host compiler needs for the kernels with all faults and for the programs in `cuda/host/`: path below `cuda/`
/// and text.
#[cfg(all(feature = "cpu", feature = "lab"))]
pub(crate) fn for_host() -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_for_gpu_only = |name: &str| name.starts_with("gpu/") || name.ends_with(".cu");
    woven().filter(move |(name, _)| !is_for_gpu_only(name)).chain(HOST_SOURCES.iter().copied())
}

/// A source that includes a file which is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the kernel source {file} line {line} includes '{included}', which is not among the embedded sources")]
pub struct SourceMissing {
    /// The file with the include.
    pub file: String,
    /// Its line.
    pub line: usize,
    /// What it asks for.
    pub included: String,
}

/// The translation unit of a scan kernel, flattened once: its file, and `entry.cu`, which calls it.
///
/// # Errors
/// As [`flatten`].
pub fn scan_source(kernel: Kernel) -> Result<&'static str, SourceMissing> {
    static SOURCES: Flattened = [const { OnceLock::new() }; Kernel::ALL.len()];
    scan_unit(kernel, &SOURCES, "", || embedded().to_vec())
}

/// The same with all faults and delays woven in: a definition before it chooses among them (`cuda/faults/hooks.cuh`).
///
/// # Errors
/// As [`flatten`].
#[cfg(feature = "lab")]
pub fn woven_scan_source(kernel: Kernel) -> Result<&'static str, SourceMissing> {
    static SOURCES: Flattened = [const { OnceLock::new() }; Kernel::ALL.len()];
    scan_unit(kernel, &SOURCES, "#include \"faults/hooks.cuh\"\n", || woven().collect())
}

/// The same for a problem whose type is declared in a text of its own or in none, behind `definitions`.
///
/// # Errors
/// As [`flatten`].
#[cfg(all(feature = "cuda", feature = "lab"))]
pub(crate) fn woven_scan_source_of(
    definitions: &str,
    kernel: Kernel,
    declarations: &str,
) -> Result<String, SourceMissing> {
    let unit = scan_unit_text(&format!("{definitions}#include \"faults/hooks.cuh\"\n"), kernel, declarations);
    let mut files: Vec<(&str, &str)> = woven().collect();
    files.push(("kernel.cu", &unit));
    flatten(&files, "kernel.cu")
}

/// The translation unit of a scan kernel for a problem whose type is declared in a text of its own.
///
/// # Errors
/// As [`flatten`].
#[cfg(feature = "cuda")]
pub(crate) fn scan_source_of(kernel: Kernel, declarations: &str) -> Result<String, SourceMissing> {
    let unit = scan_unit_text("", kernel, declarations);
    flatten(&[embedded(), &[("kernel.cu", &unit)]].concat(), "kernel.cu")
}

fn scan_unit_text(before: &str, kernel: Kernel, declarations: &str) -> String {
    format!("{before}#include \"{}\"\n{declarations}#include \"entry.cu\"\n", kernel.file())
}

/// By kernel.
type Flattened = [OnceLock<String>; Kernel::ALL.len()];

fn scan_unit(
    kernel: Kernel,
    flattened: &'static Flattened,
    before: &str,
    files: impl FnOnce() -> Vec<(&'static str, &'static str)>,
) -> Result<&'static str, SourceMissing> {
    let source = &flattened[kernel as usize];
    if let Some(source) = source.get() {
        return Ok(source);
    }
    let unit = scan_unit_text(before, kernel, "");
    let text = flatten(&[files().as_slice(), &[("kernel.cu", &unit)]].concat(), "kernel.cu")?;
    Ok(source.get_or_init(|| text))
}

/// The translation unit of kernels beside the scans, `verify.cu` and others, flattened.
///
/// # Errors
/// As [`flatten`].
pub fn tools_source(file: &str) -> Result<String, SourceMissing> {
    flatten(&[embedded(), &[("instances.h", &instances())]].concat(), file)
}

/// The translation unit `cuda/arithmetic.cu` with all faults woven in, of which one is chosen by its number, or none by 0.
///
/// # Errors
/// As [`flatten`].
#[cfg(feature = "lab")]
pub fn arithmetic_source(fault: u32) -> Result<String, SourceMissing> {
    let unit = format!("#define LOOKBACK_MUTANT {fault}u\n#include \"faults/hooks.cuh\"\n#include \"arithmetic.cu\"\n");
    let files: Vec<_> = woven().collect();
    flatten(&[files.as_slice(), &[("unit.cu", &unit)]].concat(), "unit.cu")
}

/// The header that such kernels are instantiated from: the rows of `src/element/table.rs` that are numbers, as lists of
/// a word for the kernel's name and a type.
fn instances() -> String {
    fn list(text: &mut String, name: &str, rows: impl Iterator<Item = (String, String)>) {
        let _ = write!(text, "#define {name}(EACH)");
        for (word, cuda_type) in rows {
            let _ = write!(text, " \\\n  EACH({word}, {cuda_type})");
        }
        text.push('\n');
    }
    let numbers = || ElementType::NUMBERS.iter().copied();
    let row = |element: ElementType| (element.to_string(), element.cuda_type().to_owned());
    let operators = Instance::all().filter(|instance| ElementType::NUMBERS.contains(&instance.element()));
    let mut text = String::from("#pragma once\n\n");
    list(&mut text, "LOOKBACK_NUMBERS", numbers().map(row));
    list(&mut text, "LOOKBACK_FLOATS", numbers().filter(|element| element.is_float()).map(row));
    list(&mut text, "LOOKBACK_OPERATORS", operators.map(|instance| (instance.identifier(), instance.cuda_type())));
    text
}

/// Replaces every `#include "…"` in `entry` by the file's text, each file once.
///
/// An include inside `#if … #endif` is expanded there and forgotten at the branch's end, because the
/// branch may not be taken; the file's own include guard then keeps it single. An include in a branch
/// that names a file which is not embedded (the CPU device's shim) is left as it stands.
///
/// # Errors
/// When an unconditional include names no file in `files`.
pub fn flatten(files: &[(&str, &str)], entry: &str) -> Result<String, SourceMissing> {
    let mut output = String::new();
    let mut flattening = Flattening { files, seen: BTreeSet::new(), open: Vec::new() };
    let Some(text) = flattening.text(entry) else {
        return Err(SourceMissing { file: String::from("(build)"), line: 0, included: entry.to_owned() });
    };
    flattening.append(entry, text, &mut output)?;
    Ok(output)
}

struct Flattening<'a> {
    files: &'a [(&'a str, &'a str)],
    seen: BTreeSet<String>,
    /// The files being expanded, outermost first: a cycle ends here even where `seen` forgets.
    open: Vec<String>,
}

impl<'a> Flattening<'a> {
    fn text(&self, path: &str) -> Option<&'a str> {
        self.files.iter().find(|(name, _)| *name == path).map(|(_, text)| *text)
    }

    fn append(&mut self, path: &str, text: &str, output: &mut String) -> Result<(), SourceMissing> {
        self.seen.insert(path.to_owned());
        self.open.push(path.to_owned());
        line_directive(output, 1, path);
        // What had been seen where each open `#if` began; the file's include guard is not counted.
        let mut branches: Vec<BTreeSet<String>> = Vec::new();
        let guard = include_guard_line(text);
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let directive = line.trim_start().strip_prefix('#').map(str::trim_start);
            let word = directive.map_or("", |text| text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or(""));
            match word {
                "if" | "ifdef" | "ifndef" if Some(index) != guard => branches.push(self.seen.clone()),
                "else" | "elif" => {
                    if let Some(before) = branches.last() {
                        self.seen.clone_from(before);
                    }
                }
                "endif" => {
                    // The guard's own `#endif` finds no open branch.
                    if let Some(before) = branches.pop() {
                        self.seen = before;
                    }
                }
                _ => {}
            }
            if directive.is_some_and(|text| text.split_whitespace().eq(["pragma", "once"])) {
                // Each file stands in the flat text once already; there the compiler would warn of it.
                output.push('\n');
                continue;
            }
            let included = if word == "include" { directive.and_then(quoted) } else { None };
            let Some(included) = included else {
                output.push_str(line);
                output.push('\n');
                continue;
            };
            let target = resolve(path, included);
            if self.seen.contains(&target) || self.open.contains(&target) {
                output.push('\n');
                continue;
            }
            match self.text(&target) {
                Some(text) => {
                    self.append(&target, text, output)?;
                    line_directive(output, number + 1, path);
                }
                None if branches.is_empty() => {
                    return Err(SourceMissing { file: path.to_owned(), line: number, included: included.to_owned() });
                }
                None => {
                    output.push_str(line);
                    output.push('\n');
                }
            }
        }
        self.open.pop();
        Ok(())
    }
}

fn line_directive(output: &mut String, line: usize, path: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(output, "#line {line} \"cuda/{path}\"");
}

/// The name between the quotes of `include "…"`; nothing for `include <…>`.
fn quoted(directive: &str) -> Option<&str> {
    directive.strip_prefix("include")?.trim_start().strip_prefix('"')?.split('"').next()
}

/// The index of the `#ifndef X` that is directly followed by `#define X`, if that pair comes before any
/// other directive.
fn include_guard_line(text: &str) -> Option<usize> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with('#'));
    let (index, first) = lines.next()?;
    let (_, second) = lines.next()?;
    let name = first.trim_start().strip_prefix("#ifndef")?.trim();
    (second.trim_start().strip_prefix("#define")?.trim() == name).then_some(index)
}

/// `scan/lookback.cuh` including `../memory.cuh` means `memory.cuh`.
fn resolve(including: &str, included: &str) -> String {
    let mut parts: Vec<&str> = including.split('/').collect();
    parts.pop();
    for part in included.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABI: (&str, &str) = ("abi.h", "#ifndef ABI\n#define ABI\nint abi;\n#endif\n");
    const MEMORY: (&str, &str) = (
        "memory.cuh",
        "#ifndef MEMORY\n#define MEMORY\n#include \"abi.h\"\n#if defined(__CUDACC__)\n#include \"gpu/memory.cuh\"\n#else\n\
         #include \"host/memory.h\"\n#endif\nint memory;\n#endif\n",
    );
    const GPU: (&str, &str) = ("gpu/memory.cuh", "#ifndef GPU\n#define GPU\n#include \"../abi.h\"\nint gpu;\n#endif\n");
    const SCAN: (&str, &str) =
        ("scan/a.cuh", "#ifndef A\n#define A\n#include \"../memory.cuh\"\n#include \"../abi.h\"\nint a;\n#endif\n");

    #[test]
    fn includes_are_resolved_relative_to_the_including_file_and_once() {
        let flat = flatten(
            &[ABI, MEMORY, GPU, SCAN, ("entry.cu", "#include \"abi.h\"\n#include \"scan/a.cuh\"\nint e;\n")],
            "entry.cu",
        )
        .expect("every file is there");
        for once in ["int abi;", "int memory;", "int gpu;", "int a;", "int e;"] {
            assert_eq!(flat.matches(once).count(), 1, "{once} in\n{flat}");
        }
        assert!(flat.contains("#include \"host/memory.h\""), "the CPU device's branch stays as it is\n{flat}");
    }

    #[test]
    fn line_directives_name_the_file_and_line_of_what_follows() {
        let flat =
            flatten(&[ABI, ("entry.cu", "int before;\n#include \"abi.h\"\nint after;\n")], "entry.cu").expect("fits");
        assert!(flat.contains("#line 3 \"cuda/entry.cu\"\nint after;"), "{flat}");
        assert!(flat.contains("#line 1 \"cuda/abi.h\"\n"), "{flat}");
    }

    #[test]
    fn an_include_in_a_branch_does_not_hide_the_same_include_after_it() {
        let entry = "#if 0\n#include \"abi.h\"\n#else\nint other;\n#endif\n#include \"abi.h\"\n";
        let flat = flatten(&[ABI, ("entry.cu", entry)], "entry.cu").expect("fits");
        assert_eq!(flat.matches("int abi;").count(), 2, "{flat}");
    }

    #[test]
    fn a_missing_file_is_named_with_the_place_that_asks_for_it() {
        let error = flatten(&[("entry.cu", "\n#include \"nowhere.cuh\"\n")], "entry.cu").expect_err("it is not there");
        assert!(
            matches!(&error, SourceMissing { file, line: 2, included } if file == "entry.cu" && included == "nowhere.cuh"),
            "{error}"
        );
    }

    #[test]
    fn files_that_include_each_other_end() {
        let files = [("entry.cu", "#if 1\n#include \"b.cuh\"\n#endif\n"), ("b.cuh", "#include \"entry.cu\"\nint b;\n")];
        let flat = flatten(&files, "entry.cu").expect("fits");
        assert_eq!(flat.matches("int b;").count(), 1);
    }

    #[test]
    fn the_embedded_sources_hold_no_host_files_and_fit_together() {
        let others = ["faults/", "host/", "peers/"];
        assert!(embedded().iter().all(|(name, _)| others.iter().all(|folder| !name.starts_with(folder))));
        // No fault, delay or counter stands in a kernel's text.
        for (name, text) in embedded().iter().filter(|(name, _)| !name.starts_with("gpu/")) {
            let hook =
                ["MUTANT", "DELAY_POINT", "count_lookback", "TRACE("].into_iter().find(|hook| text.contains(hook));
            assert_eq!(hook, None, "cuda/{name}");
        }
        for &kernel in Kernel::ALL {
            let source = scan_source(kernel).expect("its file and entry.cu fit");
            assert!(source.contains("lookback_entry") && source.contains(&format!("DEVICE void {}(", kernel.name())));
        }
    }
}
