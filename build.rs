//! Finds the kernels in `cuda/scan`, compiles them for the CPU device, one object an instance (element type × operator),
//! and embeds the kernel sources for the CUDA device. Needs a host C++17 compiler for the CPU device alone. Feature
//! `peers` compiles other people's scans with nvcc besides.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

#[cfg(feature = "peers")]
#[path = "cuda/peers/build.rs"]
mod peers;
#[cfg(any(feature = "cpu", feature = "lab"))]
#[path = "src/kernels/weave.rs"]
mod weave;

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("cuda");
    let output = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    list_kernels(&root, &output);
    embed_kernel_sources(&root, &output);
    #[cfg(any(feature = "cpu", feature = "lab"))]
    let woven = woven_kernels(&root);
    #[cfg(feature = "lab")]
    embed_faults(&root, &woven, &output);
    #[cfg(feature = "cpu")]
    compile_cpu_kernels(&root, &output, &woven);
    #[cfg(feature = "peers")]
    peers::compile();
}

/// Files that have not changed keep their time stamp.
fn write(path: &Path, text: &str) {
    if std::fs::read_to_string(path).ok().as_deref() != Some(text) {
        std::fs::write(path, text).expect("OUT_DIR can be written");
    }
}

/// Finds the kernels of `cuda/scan`, by name: every function with a kernel's parameters is one. Writes `kernels.rs`, the
/// rows of `src/strategy/kernel.rs`, and `kernels.h`, which includes their files and lists them for `cuda/host`.
fn list_kernels(root: &Path, output: &Path) {
    let mut kernels = Vec::new();
    let mut includes = String::new();
    for file in files_below(&root.join("scan")) {
        let text = std::fs::read_to_string(&file).expect("the file can be read");
        let name = |line: &str| {
            let name = line.strip_prefix("DEVICE void ")?;
            Some(name.strip_suffix("(Config config, const lookback_launch& launch) {")?.to_owned())
        };
        // As `entry.cu` asks of the one kernel that it is compiled for.
        let allows_next_launch = text.lines().any(|line| line == "#define LOOKBACK_KERNEL_ALLOWS_NEXT_LAUNCH");
        let file = name_below(root, &file);
        writeln!(includes, "#include \"../{file}\"").expect("writing to a String");
        kernels.extend(text.lines().filter_map(name).map(|name| (name, file.clone(), allows_next_launch)));
    }
    kernels.sort();
    let mut rows = String::from("kernels! {\n");
    let mut list = String::from("#define LOOKBACK_KERNELS(EACH)");
    for (name, file, allows_next_launch) in &kernels {
        let capitalized = |word: &str| word[..1].to_uppercase() + &word[1..];
        let variant: String = name.split('_').map(capitalized).collect();
        writeln!(rows, "    /// In `cuda/{file}`.\n    {variant} = {name:?} in {file:?},")
            .expect("writing to a String");
        write!(list, " \\\n  EACH({name}, {allows_next_launch})").expect("writing to a String");
    }
    write(&output.join("kernels.rs"), &(rows + "}\n"));
    write(&output.join("kernels.h"), &format!("#pragma once\n\n{includes}\n{list}\n"));
}

/// A kernel file with what `cuda/faults` has for it.
#[cfg(any(feature = "cpu", feature = "lab"))]
struct Woven {
    /// Its path below `cuda/`.
    name: String,
    faults: weave::Faults,
    text: String,
}

/// Weaves what is in `cuda/faults`, and what follows from the rules, into the kernels' sources.
#[cfg(any(feature = "cpu", feature = "lab"))]
fn woven_kernels(root: &Path) -> Vec<Woven> {
    let folder = root.join("faults");
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let is_of_kernels = |name: &String| !["faults/", "host/", "own/", "peers/"].iter().any(|of| name.starts_with(of));
    let mut files = files_below(&folder);
    files.retain(|file| file.extension().is_some_and(|kind| kind == "toml"));
    let mut all: Vec<Woven> = Vec::new();
    let kernels = files_below(root).into_iter().filter(|file| file.extension().is_some_and(|kind| kind == "cuh"));
    for name in kernels.map(|file| name_below(root, &file)).filter(is_of_kernels) {
        let by_hand = folder.join(&name).with_extension("toml");
        let has_faults = files.iter().position(|file| *file == by_hand).map(|at| files.swap_remove(at)).is_some();
        let weave = || {
            let mut faults =
                if has_faults { weave::Faults::parse(&read(&by_hand)?)? } else { weave::Faults::default() };
            let text = read(&root.join(&name))?;
            // What only a GPU runs is looked at as PTX: its faults are those that a check of it has to see.
            let text = faults.weave(&text, !name.starts_with("gpu/"))?;
            Ok(Woven { name: name.clone(), faults, text })
        };
        let woven = weave().unwrap_or_else(|error: String| panic!("cuda/faults for cuda/{name}: {error}"));
        if has_faults || !woven.faults.faults.is_empty() {
            all.push(woven);
        }
    }
    if let Some(file) = files.first() {
        panic!("cuda/{}: there is no kernel file of this name", name_below(root, file));
    }
    all
}

/// Writes `faults.rs`: the faults, those of code that only a GPU runs apart; and the woven files, by their paths below
/// `cuda/`.
#[cfg(feature = "lab")]
fn embed_faults(root: &Path, woven: &[Woven], output: &Path) {
    let mut rows = [("FAULTS", String::new()), ("GPU_FAULTS", String::new())];
    let mut sources = String::from("static WOVEN_SOURCES: &[(&str, &str)] = &[\n");
    let hooks = std::fs::read_to_string(root.join("faults/hooks.cuh")).expect("the file can be read");
    writeln!(sources, "    (\"faults/hooks.cuh\", {hooks:?}),").expect("writing to a String");
    for Woven { name: file, faults, text } in woven {
        writeln!(sources, "    ({file:?}, {text:?}),").expect("writing to a String");
        let (_, rows) = &mut rows[usize::from(file.starts_with("gpu/"))];
        for weave::Fault { name, when, text, line, rule, .. } in &faults.faults {
            writeln!(
                rows,
                "    Fault {{ file: {file:?}, line: {line}, name: {name:?}, rule: {rule:?}, when: {when:?}, text: {text:?} }},"
            )
            .expect("writing to a String");
        }
    }
    let tables = rows.map(|(table, rows)| format!("static {table}: &[Fault] = &[\n{rows}];\n"));
    write(&output.join("faults.rs"), &tables.concat());
    write(&output.join("woven_sources.rs"), &(sources + "];\n"));
}

/// Writes `cuda/` as the host's compiler reads it, with all faults, and says where it is.
#[cfg(feature = "cpu")]
fn write_woven_tree(root: &Path, output: &Path, woven: &[Woven]) -> PathBuf {
    let tree = output.join("woven/cuda");
    let is_source = |path: &PathBuf| ["h", "cuh", "cpp"].iter().any(|kind| path.extension() == Some(kind.as_ref()));
    for path in files_below(root).into_iter().filter(is_source) {
        let name = name_below(root, &path);
        let text = match woven.iter().find(|woven| woven.name == name) {
            Some(woven) => woven.text.clone(),
            None => std::fs::read_to_string(&path).expect("the file can be read"),
        };
        let copy = tree.join(name);
        std::fs::create_dir_all(copy.parent().expect("it is in a folder")).expect("OUT_DIR can be written");
        // The compiler names the file that one can edit.
        write(&copy, &format!("#line 1 {:?}\n{text}", path.to_str().expect("the path is UTF-8")));
    }
    tree
}

/// Compiles `cuda/host/instantiate.cpp` once an instance, and writes `instances.rs`: the table that finds
/// the kernels of an instance. VT, block size and all other choices are run-time values on the CPU device,
/// so there is nothing else to compile.
#[cfg(feature = "cpu")]
fn compile_cpu_kernels(root: &Path, output: &Path, woven: &[Woven]) {
    // A namespace of their own: the linker keeps one of two functions that have the same name.
    // A loop that ends a round too soon leaves a value unset, which is what it is there for.
    const WITH_MUTANTS_TEXT: &str = "#define LOOKBACK_MUTANTS_AT_RUN_TIME\n#define lookback lookback_with_mutants\n\
                                     #if defined(__GNUC__) && !defined(__clang__)\n\
                                     #pragma GCC diagnostic ignored \"-Wmaybe-uninitialized\"\n#endif\n";
    let host = write_woven_tree(root, output, woven).join("host");
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(2).debug(false).extra_warnings(true).include(&host).include(output);
    // Kernels neither throw nor ask for types; the running thread's context is one load away if the
    // thread-local is resolved at link time.
    for flag in ["-fno-exceptions", "-fno-rtti", "-ftls-model=initial-exec"] {
        build.flag_if_supported(flag);
    }
    build.file(host.join("runtime.cpp")).file(host.join("test_kernels.cpp")).file(host.join("team.cpp"));
    let (mut declarations, mut arms) = (String::new(), String::new());
    for (element, operator, cuda) in instances::compiled() {
        for has_mutants in [false, true] {
            if has_mutants && !instances::WITH_MUTANTS.contains(&(element, operator)) {
                continue;
            }
            let (prefix, text) = if has_mutants { ("mutant_", WITH_MUTANTS_TEXT) } else { ("", "") };
            let bodies = format!("lookback_{prefix}bodies_{element}_{operator}").to_lowercase();
            let source = output.join(format!("{bodies}.cpp"));
            write(
                &source,
                &format!(
                    "{text}#define LOOKBACK_PROBLEM ::lookback::plain<{cuda}>\n#define LOOKBACK_BODIES {bodies}\n#include \"instantiate.cpp\"\n"
                ),
            );
            build.file(source);
            writeln!(declarations, "    fn {bodies}(kernel: u32) -> Option<KernelBody>;").expect("writing to a String");
            writeln!(arms, "        (ElementType::{element}, Operator::{operator}, {has_mutants}) => Some({bodies}),")
                .expect("writing to a String");
        }
    }
    write(
        &output.join("instances.rs"),
        &format!(
            "unsafe extern \"C\" {{\n{declarations}}}\n\n\
             fn bodies(\n    element: ElementType,\n    operator: Operator,\n    has_mutants: bool,\n\
             ) -> Option<unsafe extern \"C\" fn(u32) -> Option<KernelBody>> {{\n    \
             match (element, operator, has_mutants) {{\n{arms}        _ => None,\n    }}\n}}\n"
        ),
    );
    let compiler = build.get_compiler();
    println!("cargo:rustc-env=LOOKBACK_HOST_COMPILER={}", compiler.path().display());
    // Documentation is not linked, and docs.rs has a quarter of an hour for everything.
    if std::env::var_os("DOCS_RS").is_none() {
        build.compile("lookback_cpu_kernels");
    }
}

/// What `src/element/table.rs` says of the instances.
#[cfg(any(feature = "cpu", feature = "peers"))]
#[allow(dead_code)] // where only one of the two features asks
mod instances {
    include!("src/element/table.rs");

    macro_rules! elements {
        ({} integers { $($(#[$_i:meta])* $integer:ident = $integer_name:literal, $type:ident, $integer_cuda:literal;)* }
            floats { $($(#[$_f:meta])* $float:ident = $float_name:literal, $_ft:ident, $float_cuda:literal;)* }
            halves $halves:tt own $own:tt) => {
            /// Variant, type in CUDA, whether it is signed.
            const INTEGERS: &[(&str, &str, bool)] = &[$((stringify!($integer), $integer_cuda, $type::MIN != 0)),*];
            /// Names of the types of numbers, and the type in CUDA of those that are floats.
            pub const NUMBERS: &[(&str, Option<&str>)] = &[$(($integer_name, None),)* $(($float_name, Some($float_cuda)),)*];
            /// Variant, type in CUDA.
            const FLOATS: &[(&str, &str)] = &[$((stringify!($float), $float_cuda)),*];
        };
    }
    element_types!(elements {});

    macro_rules! combinations {
        ({} numbers { $($(#[$_n:meta])* $number:ident = $_nn:literal, $_nm:ident, $number_cuda:literal, arithmetic: $arithmetic:literal, input: $_nd:ident;)* }
            integers { $($(#[$_i:meta])* $integer:ident = $_in:literal, $_im:ident, $integer_cuda:literal, input: $_id:ident;)* }
            own { $($(#[$_o:meta])* $own:ident = $_on:literal, $_om:ident, $own_cuda:literal, on: $element:ident;)* }) => {
            /// Variant, struct in CUDA, whether it is defined on integers alone, whether signs do not matter to integers.
            const OPERATORS: &[(&str, &str, bool, bool)] = &[
                $((stringify!($number), $number_cuda, false, $arithmetic),)*
                $((stringify!($integer), $integer_cuda, true, true),)*
            ];
            /// Variant of the operator and of its element, struct in CUDA.
            const OWN: &[(&str, &str, &str)] = &[$((stringify!($own), stringify!($element), $own_cuda)),*];
        };
    }
    operators!(combinations {});

    macro_rules! on_demand {
        (types { $($element:ident)* } operators { $($operator:ident)* }) => {
            const TYPES_ON_DEMAND: &[&str] = &[$(stringify!($element)),*];
            const OPERATORS_ON_DEMAND: &[&str] = &[$(stringify!($operator)),*];
        };
    }
    compiled_on_demand!(on_demand);

    macro_rules! pairs {
        ($($element:ident $operator:ident),*) => { &[$((stringify!($element), stringify!($operator))),*] };
    }
    /// Variants of element types and operators.
    pub const WITH_MUTANTS: &[(&str, &str)] = with_mutants!(pairs);

    /// The pairs that `Instance::canonical` leaves, without those on demand: variants of element type and operator, and the
    /// operator in CUDA.
    pub fn compiled() -> Vec<(&'static str, &'static str, String)> {
        let mut all = Vec::new();
        for &(operator, cuda, is_of_integers, ignores_signs) in OPERATORS {
            let integers = INTEGERS.iter().filter(|(.., is_signed)| !(*is_signed && ignores_signs));
            let floats = FLOATS.iter().filter(|_| !is_of_integers);
            let elements = integers.map(|&(element, text, _)| (element, text)).chain(floats.copied());
            all.extend(
                elements.map(|(element, text)| (element, operator, format!("::lookback::operators::{cuda}<{text}>"))),
            );
        }
        all.retain(|(element, operator, _)| {
            !TYPES_ON_DEMAND.contains(element) && !OPERATORS_ON_DEMAND.contains(operator)
        });
        all.extend(
            OWN.iter().map(|&(operator, element, cuda)| (element, operator, format!("::lookback::operators::{cuda}"))),
        );
        all
    }
}

/// Writes `kernel_sources.rs`: two tables of paths below `cuda/` and texts, the one of every file that NVRTC may need,
/// the other of what the program's own compilation for the host needs besides (`src/lab/stress/thread_sanitizer`). Read
/// at build time, so that the program runs alone on a machine without the repository.
fn embed_kernel_sources(root: &Path, output: &Path) {
    println!("cargo:rerun-if-changed={}", root.display());
    let files: Vec<_> = files_below(root).into_iter().map(|path| (name_below(root, &path), path)).collect();
    let mut code = String::new();
    // The peers are compiled by another compiler, elsewhere.
    write_table(&mut code, "KERNEL_SOURCES", &files, |folder, extension| {
        !["faults", "host", "peers"].contains(&folder) && ["h", "cuh", "cu"].contains(&extension)
    });
    #[cfg(all(feature = "cpu", feature = "lab"))]
    {
        let listed = (String::from("host/kernels.h"), output.join("kernels.h"));
        let files = [files, vec![listed]].concat();
        write_table(&mut code, "HOST_SOURCES", &files, |folder, extension| {
            folder == "host" && ["h", "cpp"].contains(&extension)
        });
    }
    write(&output.join("kernel_sources.rs"), &code);
}

/// Every file in a folder and in those inside it, sorted, so that the same sources give the same binary.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("cuda/ is a folder of the package") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

/// A path below `cuda/`, as `#include` writes it.
fn name_below(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).expect("found below it").to_str().expect("file names are ASCII").replace('\\', "/")
}

/// Writes a table of those of `files` whose first folder and extension are `wanted`: name and text.
fn write_table(code: &mut String, table: &str, files: &[(String, PathBuf)], wanted: impl Fn(&str, &str) -> bool) {
    writeln!(code, "static {table}: &[(&str, &str)] = &[").expect("writing to a String");
    for (name, path) in files {
        let folder = name.split_once('/').map_or("", |(folder, _)| folder);
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        if wanted(folder, extension) {
            writeln!(code, "    ({name:?}, include_str!({:?})),", path.to_str().expect("the path is UTF-8"))
                .expect("writing to a String");
        }
    }
    code.push_str("];\n");
}
