//! Compiles the kernels for the CPU device, one object an instance (element type × operator), and embeds
//! the kernel sources for the CUDA device. Needs a host C++17 compiler for the first, nothing for the second.
//! Feature `peers` compiles other people's scans with nvcc besides.

#[cfg(feature = "peers")]
#[path = "cuda/peers/build.rs"]
mod peers;

fn main() {
    embed_kernel_sources();
    #[cfg(feature = "cpu")]
    compile_cpu_kernels();
    #[cfg(feature = "peers")]
    peers::compile();
}

/// Compiles `cuda/host/instantiate.cpp` once an instance, and writes `instances.rs`: the table that finds
/// the kernels of an instance. VT, block size and all other choices are run-time values on the CPU device,
/// so there is nothing else to compile.
#[cfg(feature = "cpu")]
fn compile_cpu_kernels() {
    use std::fmt::Write as _;
    use std::path::PathBuf;

    // Positions in `ElementType::ALL` and `Operator::ALL`, for the pairs that `Instance::canonical` leaves.
    const NUMBERS: std::ops::Range<u32> = 0..8;
    const SIGNED: [u32; 2] = [3, 5];
    const FLOATS: [u32; 2] = [6, 7];
    const SUM: u32 = 0;
    const MINIMUM_AND_MAXIMUM: [u32; 2] = [1, 2];
    const BITWISE: [u32; 3] = [3, 4, 5];
    const WITH_OWN_ELEMENT: [(u32, u32); 3] = [(8, 6), (9, 7), (10, 8)];
    // Those that are compiled once more with every mutant to choose from at run time (cuda/mutants.cuh): a value of
    // 1, 4, 8 and 16 bytes, and the operators that are not commutative.
    const WITH_MUTANTS: [(u32, u32); 6] = [(0, 0), (2, 0), (4, 0), (8, 6), (9, 7), (10, 8)];
    // A namespace of their own: the linker keeps one of two functions that have the same name.
    const WITH_MUTANTS_TEXT: &str = "#define LOOKBACK_MUTANTS_AT_RUN_TIME\n#define lookback lookback_with_mutants\n";
    let mut instances = Vec::from(WITH_OWN_ELEMENT);
    for element in NUMBERS {
        instances.extend(MINIMUM_AND_MAXIMUM.map(|operator| (element, operator)));
        if !SIGNED.contains(&element) {
            instances.push((element, SUM));
            if !FLOATS.contains(&element) {
                instances.extend(BITWISE.map(|operator| (element, operator)));
            }
        }
    }
    instances.sort_unstable();

    let host = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("cuda/host");
    let output = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(2).debug(false).extra_warnings(true);
    // Kernels neither throw nor ask for types; the running thread's context is one load away if the
    // thread-local is resolved at link time.
    for flag in ["-fno-exceptions", "-fno-rtti", "-ftls-model=initial-exec"] {
        build.flag_if_supported(flag);
    }
    build.file(host.join("runtime.cpp")).file(host.join("test_kernels.cpp"));
    let mut declarations = String::new();
    let mut arms = [String::new(), String::new()];
    let plain = instances.iter().map(|&instance| (instance, false));
    for ((element, operator), has_mutants) in plain.chain(WITH_MUTANTS.map(|instance| (instance, true))) {
        let bodies = format!("lookback_{}bodies_{element}_{operator}", if has_mutants { "mutant_" } else { "" });
        let source = output.join(format!("{bodies}.cpp"));
        let text = format!(
            "{}#define LOOKBACK_ELEMENT {element}\n#define LOOKBACK_OPERATOR {operator}\n#define LOOKBACK_BODIES {bodies}\n#include {:?}\n",
            if has_mutants { WITH_MUTANTS_TEXT } else { "" },
            host.join("instantiate.cpp")
        );
        // Unchanged files keep their time stamp.
        if std::fs::read_to_string(&source).ok().as_deref() != Some(text.as_str()) {
            std::fs::write(&source, text).expect("OUT_DIR can be written");
        }
        build.file(source);
        writeln!(declarations, "    fn {bodies}(kernel: u32) -> Option<KernelBody>;").expect("writing to a String");
        writeln!(arms[usize::from(has_mutants)], "        ({element}, {operator}, {has_mutants}) => Some({bodies}),")
            .expect("writing to a String");
    }
    std::fs::write(
        output.join("instances.rs"),
        format!(
            "unsafe extern \"C\" {{\n{declarations}}}\n\n\
             fn bodies(\n    element: u32,\n    operator: u32,\n    has_mutants: bool,\n\
             ) -> Option<unsafe extern \"C\" fn(u32) -> Option<KernelBody>> {{\n    \
             match (element, operator, has_mutants) {{\n{}{}        _ => None,\n    }}\n}}\n",
            arms[0], arms[1]
        ),
    )
    .expect("OUT_DIR can be written");
    let compiler = build.get_compiler();
    println!("cargo:rustc-env=LOOKBACK_HOST_COMPILER={}", compiler.path().display());
    build.compile("lookback_cpu_kernels");
}

/// Writes `kernel_sources.rs`: two tables of paths below `cuda/` and texts, the one of every file that NVRTC may need,
/// the other of what the program's own compilation for the host needs besides (`src/stress/thread_sanitizer`). Read at
/// build time, so that the program runs alone on a machine without the repository.
fn embed_kernel_sources() {
    use std::path::PathBuf;

    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("cuda");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("cuda/ is a folder of the package") {
            let path = entry.expect("the folder can be read").path();
            let below = path.strip_prefix(&root).expect("found below it").to_owned();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push((below.to_str().expect("file names are ASCII").replace('\\', "/"), path));
            }
        }
    }
    // Sorted, so that the same sources give the same binary.
    files.sort();
    let mut code = String::new();
    // The peers are compiled by another compiler, elsewhere.
    write_table(&mut code, "KERNEL_SOURCES", &files, |folder, extension| {
        folder != "host" && folder != "peers" && ["h", "cuh", "cu"].contains(&extension)
    });
    #[cfg(feature = "cpu")]
    write_table(&mut code, "HOST_SOURCES", &files, |folder, extension| {
        folder == "host" && ["h", "cpp"].contains(&extension)
    });
    let output = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    std::fs::write(output.join("kernel_sources.rs"), code).expect("OUT_DIR can be written");
}

/// Writes a table of those of `files` whose first folder and extension are `wanted`: name and text.
fn write_table(
    code: &mut String,
    table: &str,
    files: &[(String, std::path::PathBuf)],
    wanted: impl Fn(&str, &str) -> bool,
) {
    use std::fmt::Write as _;

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
