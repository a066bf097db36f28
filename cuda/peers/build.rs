//! Compiles the peers with nvcc: part of the crate's build script, under the feature `peers`.
//!
//! Needs no GPU. What comes out holds the CUDA runtime and the C++ library inside, so a binary made here runs on
//! any machine with an NVIDIA driver. nvcc takes minutes, so an object is made anew only if its source, its
//! command or nvcc itself changed.

use std::collections::VecDeque;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The CUB that comes with CUDA 13.0, found by nvcc itself, and the newest one, in a folder of its own.
const VERSIONS: [Version; 2] = [
    Version { macro_value: "300001", text: "3.0.1", identifier: "3_0_1", beside_the_toolkit: false },
    Version { macro_value: "300500", text: "3.5.0", identifier: "3_5_0", beside_the_toolkit: true },
];
/// Turing, Ampere, Hopper; the newest one's PTX serves later GPUs.
const DEFAULT_ARCHITECTURES: &str = "75,80,90";
const HOW_TO_INSTALL: &str = "run scripts/install-cuda.sh (no root, no GPU needed)";

struct Version {
    /// What `CUB_VERSION` must be.
    macro_value: &'static str,
    text: &'static str,
    identifier: &'static str,
    /// Whether its headers are not the toolkit's own.
    beside_the_toolkit: bool,
}

/// One call of nvcc.
struct Unit {
    source: PathBuf,
    object: PathBuf,
    arguments: Vec<String>,
}

/// Compiles everything, links it, and writes `peer_tables.rs`: the functions that hand out the tables.
///
/// # Panics
/// A build script has no other way to fail. The messages say what to do.
pub fn compile() {
    for variable in [
        "NVCC",
        "NVCC_CCBIN",
        "CUDA_HOME",
        "CUDA_PATH",
        "VIRTUAL_ENV",
        "LOOKBACK_CUDA_HOME",
        "LOOKBACK_CCCL_HOME",
        "LOOKBACK_PEERS_ARCHITECTURES",
    ] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let sources = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("cuda/peers");
    let output = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let nvcc = find_nvcc();
    let newer_headers = find_newer_headers();

    let mut tables = vec![String::from("lookback_peers_copy")];
    let mut units = vec![Unit {
        source: sources.join("copy.cu"),
        object: output.join("peers_copy.o"),
        arguments: vec![format!("-DLOOKBACK_PEER_TABLE={}", tables[0])],
    }];
    for version in &VERSIONS {
        let mut common = vec![
            format!("-DLOOKBACK_CUB_VERSION={}", version.macro_value),
            format!("-DLOOKBACK_CUB_VERSION_TEXT=\"{}\"", version.text),
            // Wraps CUB and Thrust alike: two versions of either then share no symbol.
            format!("-DTHRUST_CUB_WRAPPED_NAMESPACE=lookback_cccl_{}", version.identifier),
        ];
        if version.beside_the_toolkit {
            // Before the toolkit's own headers of the same names.
            common.push(format!("-I{}", newer_headers.display()));
        }
        let mut add = |source: &str, name: String, extra: Vec<String>| {
            let table = format!("lookback_peers_{name}");
            let mut arguments = common.clone();
            arguments.extend(extra);
            arguments.push(format!("-DLOOKBACK_PEER_TABLE={table}"));
            units.push(Unit {
                source: sources.join(source),
                object: output.join(format!("peers_{name}.o")),
                arguments,
            });
            tables.push(table);
        };
        for (element, float) in super::instances::NUMBERS {
            // The fundamental types, because those are what CUB's tuning tables know.
            let fundamental = match (float, element.strip_prefix('u'), element.strip_prefix('i')) {
                (Some(float), ..) => String::from(*float),
                (_, Some(bits), _) => format!("std::uint{bits}_t"),
                (_, _, bits) => format!("std::int{}_t", bits.unwrap_or_default()),
            };
            let extra = [
                format!("-DLOOKBACK_PEER_ELEMENT=\"{element}\""),
                format!("-DLOOKBACK_PEER_ELEMENT_TYPE={fundamental}"),
            ];
            add("cub_scan.cu", format!("cub_{}_{element}", version.identifier), extra.to_vec());
        }
        for source in ["cub_problems", "reduction", "thrust"] {
            add(&format!("{source}.cu"), format!("{source}_{}", version.identifier), Vec::new());
        }
    }
    compile_units(&nvcc, &sources, &units);
    write_tables(&output, &tables);

    let mut archive = cc::Build::new();
    archive.cpp(true).cpp_link_stdlib(None);
    for unit in &units {
        archive.object(&unit.object);
    }
    archive.compile("lookback_peers");
    link_runtime(&nvcc);
}

/// `peer_tables.rs`: declarations of the functions, and an array of them.
fn write_tables(output: &Path, tables: &[String]) {
    let mut declarations = String::new();
    for table in tables {
        writeln!(declarations, "    fn {table}(entries: *mut *const Entry) -> usize;").expect("writing to a String");
    }
    let text = format!(
        "unsafe extern \"C\" {{\n{declarations}}}\n\n\
         static TABLES: [unsafe extern \"C\" fn(*mut *const Entry) -> usize; {}] = [\n    {},\n];\n",
        tables.len(),
        tables.join(",\n    ")
    );
    fs::write(output.join("peer_tables.rs"), text).expect("OUT_DIR can be written");
}

/// Runs nvcc for every unit whose object is not there as it should be, as many at a time as cargo allows.
fn compile_units(nvcc: &Path, sources: &Path, units: &[Unit]) {
    let nvcc_version = run(Command::new(nvcc).arg("--version"), "asking nvcc for its version")
        .unwrap_or_else(|failure| panic!("{failure}"));
    let headers = read(&sources.join("peers.h"));
    let mut flags =
        ["-std=c++17", "-O3", "-DNDEBUG", "-DCCCL_DISABLE_NVTX", "-Xcompiler=-fPIC"].map(String::from).to_vec();
    flags.extend(architecture_flags());

    let queue: Mutex<VecDeque<&Unit>> = Mutex::new(units.iter().collect());
    let worker = || -> Result<(), String> {
        loop {
            // Not held while nvcc runs.
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(unit) = next else { return Ok(()) };
            let mut command = Command::new(nvcc);
            command.args(&flags).args(&unit.arguments).arg("-c").arg(&unit.source).arg("-o").arg(&unit.object);
            // Everything that the object depends on but the versioned headers of CUDA.
            let stamp = format!("{command:?}\n{nvcc_version}\n{headers}\n{}", read(&unit.source));
            let stamp_file = unit.object.with_extension("stamp");
            if unit.object.is_file() && fs::read_to_string(&stamp_file).is_ok_and(|found| found == stamp) {
                continue;
            }
            // An interrupted nvcc must not leave a stamp that vouches for half an object.
            let _ = fs::remove_file(&stamp_file);
            if let Err(failure) = run(&mut command, "compiling the peers") {
                // The other workers need not go on for a build that has failed.
                queue.lock().unwrap_or_else(PoisonError::into_inner).clear();
                return Err(failure);
            }
            fs::write(&stamp_file, stamp).expect("OUT_DIR can be written");
        }
    };
    let jobs = env::var("NUM_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(1_usize).clamp(1, units.len());
    let results: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().expect("the worker reports its failures")).collect()
    });
    let failures: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Machine code for each architecture of `LOOKBACK_PEERS_ARCHITECTURES` ("75,80,90"), PTX for the newest.
fn architecture_flags() -> Vec<String> {
    let listed = env::var("LOOKBACK_PEERS_ARCHITECTURES").unwrap_or_default();
    let listed = if listed.trim().is_empty() { DEFAULT_ARCHITECTURES } else { listed.as_str() };
    let mut architectures: Vec<u32> = listed
        .split(',')
        .map(|number| {
            number.trim().parse().unwrap_or_else(|_| {
                panic!("LOOKBACK_PEERS_ARCHITECTURES={listed}: '{number}' is no architecture; write it like {DEFAULT_ARCHITECTURES}")
            })
        })
        .collect();
    architectures.sort_unstable();
    architectures.dedup();
    let newest = architectures.last().copied();
    architectures
        .iter()
        .map(|&number| {
            let ptx = if Some(number) == newest { format!(",compute_{number}") } else { String::new() };
            format!("-gencode=arch=compute_{number},code=[sm_{number}{ptx}]")
        })
        .collect()
}

/// The CUDA runtime and the C++ library from archives: the machine that runs need not have them.
fn link_runtime(nvcc: &Path) {
    let prefix = nvcc.canonicalize().ok().and_then(|nvcc| Some(nvcc.parent()?.parent()?.to_owned()));
    let folders = ["lib", "lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"];
    let runtime = prefix.iter().flat_map(|prefix| folders.map(|folder| prefix.join(folder)));
    let runtime = runtime.into_iter().find(|folder| folder.join("libcudart_static.a").is_file()).unwrap_or_else(|| {
        panic!(
            "no libcudart_static.a beside {}: {HOW_TO_INSTALL}, or install the toolkit's static libraries",
            nvcc.display()
        )
    });
    println!("cargo:rustc-link-search=native={}", runtime.display());
    println!("cargo:rustc-link-lib=static=cudart_static");

    let compiler = cc::Build::new().cpp(true).get_compiler();
    let answer =
        run(compiler.to_command().arg("-print-file-name=libstdc++.a"), "asking the C++ compiler for libstdc++.a")
            .unwrap_or_else(|failure| panic!("{failure}"));
    // A compiler that has none answers with the bare name.
    match Path::new(answer.trim()).parent().filter(|folder| folder.is_absolute()) {
        Some(folder) => {
            println!("cargo:rustc-link-search=native={}", folder.display());
            println!("cargo:rustc-link-lib=static=stdc++");
        }
        None => println!("cargo:rustc-link-lib=dylib=stdc++"),
    }
    for library in ["dl", "rt", "pthread"] {
        println!("cargo:rustc-link-lib=dylib={library}");
    }
}

/// nvcc, where `SearchPath::find_nvcc` of src/cuda/toolkit.rs looks for it, in the same order.
fn find_nvcc() -> PathBuf {
    let path_of = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let mut searched = Vec::new();
    if let Some(nvcc) = path_of("NVCC") {
        if let Some(found) = resolve_program(&nvcc) {
            return found;
        }
        searched.push(format!("NVCC={}", nvcc.display()));
    }
    let mut places = Vec::new();
    for name in ["LOOKBACK_CUDA_HOME", "CUDA_HOME", "CUDA_PATH"] {
        places.extend(path_of(name).map(|place| (name, place)));
    }
    let on_path = resolve_program(Path::new("nvcc")).and_then(|nvcc| nvcc.canonicalize().ok());
    places.extend(on_path.and_then(|nvcc| Some(("nvcc on PATH", nvcc.parent()?.parent()?.to_owned()))));
    places.extend(installed_home().map(|place| ("scripts/install-cuda.sh", place)));
    places.extend(path_of("VIRTUAL_ENV").map(|place| ("VIRTUAL_ENV", place)));
    places.extend(["/usr/local/cuda", "/opt/cuda"].map(|place| ("usual place", PathBuf::from(place))));
    for (reason, place) in places {
        for prefix in prefixes_below(&place) {
            let nvcc = prefix.join("bin/nvcc");
            if nvcc.is_file() {
                return nvcc;
            }
        }
        searched.push(format!("{reason} {}", place.display()));
    }
    panic!(
        "the feature 'peers' needs nvcc, and none was found. Looked at: {}. To get it, {HOW_TO_INSTALL}, or set NVCC or \
         CUDA_HOME to an installed CUDA 13.0 toolkit; or build without --features peers",
        searched.join("; ")
    )
}

/// The include folder of the newer CUB: below `LOOKBACK_CCCL_HOME`, or where scripts/install-cuda.sh puts it.
fn find_newer_headers() -> PathBuf {
    let path_of = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let mut places: Vec<PathBuf> = path_of("LOOKBACK_CCCL_HOME").into_iter().collect();
    for version in VERSIONS.iter().filter(|version| version.beside_the_toolkit) {
        let folder = format!("cccl-{}", version.text);
        places.extend(path_of("LOOKBACK_CUDA_HOME").map(|home| home.join(&folder)));
        places.extend(installed_home().map(|home| home.join(&folder)));
    }
    let below = ["nvidia/cu13/include/cccl", "include/cccl", "include", ""];
    for place in &places {
        let candidates = below.iter().map(|below| place.join(below));
        if let Some(found) = candidates.into_iter().find(|folder| folder.join("cub/version.cuh").is_file()) {
            return found;
        }
    }
    panic!(
        "the feature 'peers' needs the headers of CUB 3.5.0 beside the toolkit's own, and they were not found. Looked at: \
         {}. To get them, {HOW_TO_INSTALL}, or set LOOKBACK_CCCL_HOME to where `pip install --target` put \
         nvidia-cuda-cccl==13.3.5.0.6",
        places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join("; ")
    )
}

/// Where scripts/install-cuda.sh installs by itself.
fn installed_home() -> Option<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = variable("XDG_DATA_HOME").or_else(|| Some(variable("HOME")?.join(".local/share")))?;
    Some(data.join("lookback/cuda"))
}

/// A program by path or, if it is a bare name, by `PATH`.
fn resolve_program(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

/// Toolkit prefixes at or below a folder: itself, and the wheels in it or in a virtual environment.
fn prefixes_below(folder: &Path) -> Vec<PathBuf> {
    let mut prefixes = vec![folder.to_owned(), folder.join("nvidia/cu13")];
    let entries = fs::read_dir(folder.join("lib")).into_iter().flatten().flatten();
    let pythons = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"));
    let mut wheels: Vec<_> = pythons.map(|python| python.path().join("site-packages/nvidia/cu13")).collect();
    wheels.sort();
    prefixes.extend(wheels);
    prefixes
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{} cannot be read: {error}", file.display()))
}

/// What the command printed, or everything about its failure.
fn run(command: &mut Command, action: &str) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{action}: {command:?} does not start: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let (status, printed, complaints) = (output.status, text(&output.stdout), text(&output.stderr));
    Err(format!("{action} failed ({status}): {command:?}\n{printed}{complaints}"))
}
