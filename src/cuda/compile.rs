//! Kernels compiled on demand, for one GPU architecture, one problem and one configuration, and kept
//! on disk.
//!
//! A cubin is stored under the SHA-256 of everything it depends on: the flattened source, the options
//! (they hold architecture, problem and configuration) and the compiler. So a changed kernel or a new
//! toolkit never meets an old cubin, and nothing has to be cleared. An entry carries its own length and
//! hash; one that does not agree is compiled anew and replaced. Entries are written to a temporary file
//! and renamed, so processes that compile the same kernel at once each read a whole one.
//!
//! **Kernels made ahead.** Where a program runs without NVRTC, kernels come from a folder that was filled where there is one:
//! by `lookback kernels`, or by the program itself with [`Compiler::keeping_in`]. Entries there are cubins for exactly one
//! architecture under a key without the compiler, which is not there to be asked; source and options are in it, so that
//! a changed kernel never meets an old cubin.

use super::error::CudaError;
use super::toolkit::{LazyNvrtc, Nvrtc};
use crate::element::Problem;
use crate::gpu::Architecture;
use crate::kernels::own::OwnKernel;
use crate::kernels::sources::{self, SourceMissing};
use crate::strategy::ConfigError;
use crate::strategy::plan::{Kernel, KernelConfig, KernelKey};
use crate::strategy::ring::Ring;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What a kernel takes of a multiprocessor, as the assembler reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelResources {
    /// Registers a thread.
    pub registers: u32,
    /// Bytes of registers stored to local memory, a thread.
    pub spill_store_bytes: u32,
    /// Bytes of registers loaded back, a thread.
    pub spill_load_bytes: u32,
    /// Bytes of stack frame, a thread: spills, and arrays that are indexed by a variable.
    pub stack_bytes: u32,
    /// Bytes of static shared memory, a block.
    pub shared_bytes: u32,
}

impl KernelResources {
    /// Static shared memory that a block may have on every architecture.
    pub const SHARED_BYTES_LIMIT: u32 = 48 * 1024;

    /// Bytes spilled, both ways.
    pub const fn spill_bytes(self) -> u32 {
        self.spill_store_bytes + self.spill_load_bytes
    }

    /// Reads what `ptxas -v` wrote. A kernel that calls functions reports each; the largest stack and the
    /// sum of spills count.
    fn parse(log: &str) -> Self {
        let mut resources = Self::default();
        for line in log.lines() {
            if line.contains("bytes stack frame") {
                resources.stack_bytes = resources.stack_bytes.max(number_before(line, "bytes stack frame"));
                resources.spill_store_bytes += number_before(line, "bytes spill stores");
                resources.spill_load_bytes += number_before(line, "bytes spill loads");
            } else if line.contains("Used ") && line.contains(" registers") {
                resources.registers = resources.registers.max(number_before(line, "registers"));
                resources.stack_bytes = resources.stack_bytes.max(number_before(line, "bytes cumulative stack size"));
                resources.shared_bytes = resources.shared_bytes.max(number_before(line, "bytes smem"));
            }
        }
        resources
    }

    const FIELDS: usize = 5;

    fn to_bytes(self) -> [u8; 4 * Self::FIELDS] {
        let fields =
            [self.registers, self.spill_store_bytes, self.spill_load_bytes, self.stack_bytes, self.shared_bytes];
        let mut bytes = [0; 4 * Self::FIELDS];
        for (chunk, field) in bytes.chunks_exact_mut(4).zip(fields) {
            chunk.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: [u8; 4 * Self::FIELDS]) -> Self {
        let field = |index: usize| {
            u32::from_le_bytes([bytes[4 * index], bytes[4 * index + 1], bytes[4 * index + 2], bytes[4 * index + 3]])
        };
        Self {
            registers: field(0),
            spill_store_bytes: field(1),
            spill_load_bytes: field(2),
            stack_bytes: field(3),
            shared_bytes: field(4),
        }
    }
}

/// The number in front of `unit`: 38 for "Used 38 registers" and "registers". 0 if the unit is not there.
fn number_before(line: &str, unit: &str) -> u32 {
    let Some(end) = line.find(unit) else { return 0 };
    line[..end].split_whitespace().next_back().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// A kernel for one architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledKernel {
    /// The ELF image that the driver loads.
    pub cubin: Vec<u8>,
    /// What it takes.
    pub resources: KernelResources,
}

/// The folder that cubins are kept in.
#[derive(Debug)]
pub struct Cache {
    folder: Option<PathBuf>,
    warnings: Mutex<Vec<String>>,
}

/// The first bytes of an entry; the number is the version of its layout.
const ENTRY_MAGIC: &[u8; 16] = b"lookback cubin 1";
/// Magic, payload length, SHA-256 of the payload. The payload is the resources, then the cubin.
const ENTRY_HEADER_BYTES: usize = 16 + 8 + 32;
/// The most that an entry may have.
const ENTRY_BYTES: u64 = 1 << 30;

impl Cache {
    /// `LOOKBACK_CACHE_DIR`, or the user's cache folder; no cache, and a warning, where neither is.
    pub fn from_environment() -> Self {
        let cache = Self { folder: crate::kernels::cache::folder("cubin"), warnings: Mutex::new(Vec::new()) };
        if cache.folder.is_none() {
            cache.warn(String::from("no folder to cache compiled kernels in: set LOOKBACK_CACHE_DIR or HOME"));
        }
        cache
    }

    /// A cache in this folder.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()), warnings: Mutex::new(Vec::new()) }
    }

    /// No cache: every kernel is compiled.
    pub fn disabled() -> Self {
        Self { folder: None, warnings: Mutex::new(Vec::new()) }
    }

    /// Where entries are kept, if anywhere.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// What went wrong with the cache so far. It never keeps a kernel from being compiled.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn warn(&self, warning: String) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        // A folder that cannot be written would otherwise say so once a kernel.
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    fn entry(&self, key: &str) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(format!("{key}.cubin")))
    }

    /// The entry, if there is one and it is whole.
    fn read(&self, key: &str) -> Option<CompiledKernel> {
        let path = self.entry(key)?;
        let bytes = match crate::file::read(&path, ENTRY_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => {
                let reason = crate::file::reason(&error);
                self.warn(format!("cannot read cached kernels in {}: {reason}", path.parent()?.display()));
                return None;
            }
        };
        let kernel = decode_entry(&bytes);
        if kernel.is_none() {
            self.warn(format!("the kept kernel {} is damaged and counts for nothing", path.display()));
        }
        kernel
    }

    fn write(&self, key: &str, kernel: &CompiledKernel) {
        let (Some(folder), Some(path)) = (&self.folder, self.entry(key)) else { return };
        let written = std::fs::create_dir_all(folder).and_then(|()| {
            // In the same folder, because a rename is atomic only within a file system.
            let mut file = readable_by_all(&mut tempfile::Builder::new()).tempfile_in(folder)?;
            file.write_all(&encode_entry(kernel))?;
            file.persist(&path).map_err(|error| error.error)?;
            Ok(())
        });
        if let Err(error) = written {
            self.warn(format!(
                "compiled kernels cannot be kept in {}: {}; choose a folder that can be written, of the cache by \
                 LOOKBACK_CACHE_DIR",
                folder.display(),
                crate::file::reason(&error)
            ));
        }
    }
}

/// Who fills a folder of kernels is not always who runs them; a temporary file is its maker's alone.
fn readable_by_all<'a, 'b, 'c>(builder: &'a mut tempfile::Builder<'b, 'c>) -> &'a mut tempfile::Builder<'b, 'c> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(std::fs::Permissions::from_mode(0o644));
    }
    builder
}

fn encode_entry(kernel: &CompiledKernel) -> Vec<u8> {
    let mut payload = kernel.resources.to_bytes().to_vec();
    payload.extend_from_slice(&kernel.cubin);
    let mut entry = Vec::with_capacity(ENTRY_HEADER_BYTES + payload.len());
    entry.extend_from_slice(ENTRY_MAGIC);
    entry.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    entry.extend_from_slice(&Sha256::digest(&payload));
    entry.extend_from_slice(&payload);
    entry
}

fn decode_entry(entry: &[u8]) -> Option<CompiledKernel> {
    let (magic, rest) = entry.split_first_chunk::<16>()?;
    let (length, rest) = rest.split_first_chunk::<8>()?;
    let (hash, payload) = rest.split_first_chunk::<32>()?;
    let whole = magic == ENTRY_MAGIC
        && u64::from_le_bytes(*length) == payload.len() as u64
        && Sha256::digest(payload).as_slice() == hash;
    let (resources, cubin) = payload.split_first_chunk()?;
    whole.then(|| CompiledKernel { cubin: cubin.to_vec(), resources: KernelResources::from_bytes(*resources) })
}

/// How a kernel differs from the one that users run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Variant {
    /// The fault it is to have: the number of a mutant's name (`cuda/faults/hooks.cuh`), 0 for none.
    #[cfg(feature = "lab")]
    pub mutant: u32,
    /// Whether all faults are woven into the text even where none is chosen, to show that they cost nothing.
    #[cfg(feature = "lab")]
    pub is_woven: bool,
    /// Whether the cubin is to say nothing about source lines, which hold names, sizes and times of files.
    pub without_line_info: bool,
    /// Whether it loses time at its delay points and gives up waiting (`lookback_stress` in `cuda/abi.h`).
    #[cfg(feature = "lab")]
    pub is_stressed: bool,
    /// Whether its warps record what they come to with each tile (`lookback_trace` in `cuda/abi.h`).
    #[cfg(feature = "lab")]
    pub is_recording: bool,
}

impl Variant {
    /// The kernel of a strategy without its waiting, where there is one, and the kernel as it is where not.
    #[cfg(feature = "lab")]
    pub fn without_waiting(kernel: Kernel) -> Self {
        let fault = kernel.strategy().row().fault_without_waiting;
        Self { mutant: fault.map_or(0, crate::kernels::mutant::mutant_number), ..Self::default() }
    }

    /// The source of a kernel. Definitions stand in the text: options would not do, because a cubin keeps a copy of them,
    /// and two that differ in nothing else would not be the same.
    fn source(self, kernel: Kernel, problem: Problem) -> Result<Cow<'static, str>, SourceMissing> {
        #[cfg(feature = "lab")]
        if self.is_recording || self.mutant != 0 || self.is_woven || self.is_stressed {
            let mut definitions = format!("#define LOOKBACK_MUTANT {}u\n", self.mutant);
            if self.is_recording {
                definitions += "#define LOOKBACK_TRACE\n";
            }
            if self.is_stressed {
                definitions += "#define LOOKBACK_STRESS\n";
            }
            return if self.is_recording || problem.is_declared_apart() {
                sources::woven_scan_source_of(&definitions, kernel, &problem.declarations()).map(Cow::Owned)
            } else {
                Ok(Cow::Owned(definitions + sources::woven_scan_source(kernel)?))
            };
        }
        if problem.is_declared_apart() {
            return sources::scan_source_of(kernel, &problem.declarations()).map(Cow::Owned);
        }
        sources::scan_source(kernel).map(Cow::Borrowed)
    }
}

/// Turns kernels, problems and configurations into cubins.
#[derive(Debug)]
pub struct Compiler {
    /// None where kernels were made ahead.
    nvrtc: Option<LazyNvrtc>,
    cache: Cache,
    /// Where kernels are kept that were made ahead.
    ahead: Option<Cache>,
}

/// Stands for the compiler in the key of a kernel that was made ahead.
const AHEAD: &str = "made ahead";

impl Compiler {
    /// The machine's NVRTC and the user's cache. Where NVRTC lies in a folder that is looked at before the dynamic linker is
    /// asked (`LOOKBACK_CUDA_HOME`, `CUDA_HOME`, `CUDA_PATH`, that of `nvcc`), it is loaded by the first kernel that is not in the cache.
    ///
    /// # Errors
    /// When there is no NVRTC; the error says where it was looked for. That one which is not loaded yet cannot be, the first kernel
    /// that has to be compiled says.
    pub fn new() -> Result<Self, CudaError> {
        Ok(Self { nvrtc: Some(LazyNvrtc::find()?), cache: Cache::from_environment(), ahead: None })
    }

    /// A given NVRTC and a given cache.
    pub fn with_cache(nvrtc: Arc<Nvrtc>, cache: Cache) -> Self {
        Self { nvrtc: Some(nvrtc.into()), cache, ahead: None }
    }

    /// Keeps each kernel in this folder, too, for [`Self::without_nvrtc`].
    #[must_use]
    pub fn keeping_in(self, folder: impl Into<PathBuf>) -> Self {
        Self { ahead: Some(Cache::in_folder(folder)), ..self }
    }

    /// The kernels of a folder, and no others: needs no NVRTC and compiles nothing.
    pub fn without_nvrtc(folder: impl Into<PathBuf>) -> Self {
        Self { nvrtc: None, cache: Cache::disabled(), ahead: Some(Cache::in_folder(folder)) }
    }

    /// The compiler in words: "NVRTC 13.0".
    pub fn name(&self) -> String {
        self.nvrtc().map_or_else(
            |_| String::from("none"),
            |nvrtc| {
                let (major, minor) = nvrtc.version();
                format!("NVRTC {major}.{minor}")
            },
        )
    }

    /// What went wrong with the folders so far.
    pub fn warnings(&self) -> Vec<String> {
        let folders = [Some(&self.cache), self.ahead.as_ref()];
        folders.into_iter().flatten().flat_map(Cache::warnings).collect()
    }

    /// Where cubins are kept.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// One scan kernel, from the cache or compiled. The entry point is [`ENTRY_POINT`].
    ///
    /// # Errors
    /// When the compiler does not know the architecture, the architecture lacks what the kernel needs, or the kernel
    /// does not compile.
    pub fn scan_kernel(
        &self,
        kernel: Kernel,
        problem: Problem,
        config: &KernelConfig,
        architecture: Architecture,
    ) -> Result<CompiledKernel, CudaError> {
        self.scan_kernel_variant(kernel, problem, config, architecture, Variant::default())
    }

    /// Makes a kernel ahead: it is in the folder of [`Self::keeping_in`] then, whole, for [`Self::without_nvrtc`].
    ///
    /// # Errors
    /// When there is no such folder or it cannot be written, and as [`Self::scan_kernel`].
    pub fn make_ahead(
        &self,
        (kernel, problem, config): KernelKey,
        architecture: Architecture,
    ) -> Result<(), CudaError> {
        let kept = self.ahead.as_ref().ok_or(CudaError::NoFolder)?;
        let folder = kept.folder().ok_or(CudaError::NoFolder)?;
        self.scan_kernel(kernel, problem, &config, architecture)?;
        // Whoever takes the folder reads it so.
        let found = Self::without_nvrtc(folder).scan_kernel(kernel, problem, &config, architecture);
        found.map(drop).map_err(|error| CudaError::NotKept {
            folder: folder.to_owned(),
            remarks: match error {
                CudaError::NotMadeAhead { remarks, .. } if kept.warnings().is_empty() => remarks,
                _ => kept.warnings().join("; "),
            },
        })
    }

    /// The same for a kernel with a fault, or one made for stress.
    ///
    /// # Errors
    /// As [`Self::scan_kernel`].
    pub fn scan_kernel_variant(
        &self,
        kernel: Kernel,
        problem: Problem,
        config: &KernelConfig,
        architecture: Architecture,
        variant: Variant,
    ) -> Result<CompiledKernel, CudaError> {
        check_clusters(kernel, architecture)?;
        let options = definitions(kernel, problem, config, stages(kernel, problem, config, architecture)?);
        let threads = kernel.block_threads(config.block_threads, config.composition, problem);
        // Told only how many threads a block has, the assembler may spill a few bytes to fit one more block
        // on a multiprocessor. Told that one block will do, it takes the registers; that is asked for only
        // where it spilled, because it costs occupancy.
        let alone = vec![format!("-DLOOKBACK_LAUNCH_BOUNDS={threads},1")];
        let free = vec![format!("-DLOOKBACK_LAUNCH_BOUNDS={threads}")];
        let bounds = match kernel.resident_blocks(problem, threads) {
            Some(1) => vec![alone],
            Some(blocks) => vec![vec![format!("-DLOOKBACK_LAUNCH_BOUNDS={threads},{blocks}")], free, alone],
            None => vec![free, alone],
        };
        let source = variant.source(kernel, problem)?;
        let has_lines = !variant.without_line_info;
        self.compile(&source, has_lines, &options, &bounds, architecture, &|| describe(kernel, problem, config))
    }

    /// The PTX of a scan kernel or of a variant of it, with line information, never from the cache: what
    /// the axiomatic memory model reads.
    ///
    /// # Errors
    /// As [`Self::scan_kernel`].
    pub fn ptx(
        &self,
        kernel: Kernel,
        problem: Problem,
        config: &KernelConfig,
        architecture: Architecture,
        variant: Variant,
    ) -> Result<String, CudaError> {
        check_clusters(kernel, architecture)?;
        let threads = kernel.block_threads(config.block_threads, config.composition, problem);
        let mut options = vec![format!("-DLOOKBACK_LAUNCH_BOUNDS={threads}")];
        options.extend(definitions(kernel, problem, config, stages(kernel, problem, config, architecture)?));
        self.compile_to_ptx(&variant.source(kernel, problem)?, &options, architecture, &|| {
            describe(kernel, problem, config)
        })
    }

    /// A kernel of a user's own, for that architecture. It is `lookback_entry` in the cubin.
    ///
    /// # Errors
    /// When the text includes a file that is not there, when there is no NVRTC, it does not know the architecture, the kernel does
    /// not compile, or, of a compiler without NVRTC, it was not made ahead.
    pub fn own_kernel(&self, own: &OwnKernel<'_>, architecture: Architecture) -> Result<CompiledKernel, CudaError> {
        let what = || format!("kernel '{}'", own.function);
        self.compile(&own.source()?, true, &[], &[], architecture, &what)
    }

    /// The PTX of any source, with line information, never from the cache.
    pub(crate) fn compile_to_ptx(
        &self,
        source: &str,
        definitions: &[String],
        architecture: Architecture,
        what: &dyn Fn() -> String,
    ) -> Result<String, CudaError> {
        let target = self.supported(architecture)?;
        let options = options(&format!("compute_{}", target.number()), true, definitions);
        let (ptx, _) = self.ask_nvrtc(Nvrtc::compile_to_ptx, source, &options, architecture, what)?;
        Ok(ptx)
    }

    /// Any source, from the folder of kernels made ahead where there is no NVRTC, else through the cache. `alternatives` are
    /// options to try in turn until one gives a kernel without spills; if none does, the one with the fewest.
    pub(crate) fn compile(
        &self,
        source: &str,
        has_lines: bool,
        definitions: &[String],
        alternatives: &[Vec<String>],
        architecture: Architecture,
        what: &dyn Fn() -> String,
    ) -> Result<CompiledKernel, CudaError> {
        let key_for = |target, compiler: &str| {
            let options = kernel_options(target, has_lines, definitions);
            let options: Vec<String> = options.into_iter().chain(alternatives.iter().flatten().cloned()).collect();
            key(source, &options, compiler)
        };
        let ahead = self.ahead.as_ref().map(|folder| (folder, key_for(architecture, AHEAD)));
        if let (None, Some((kept, key))) = (&self.nvrtc, &ahead) {
            let folder = kept.folder().map(Path::to_owned).unwrap_or_default();
            let missing =
                || CudaError::NotMadeAhead { what: what(), architecture, folder, remarks: kept.warnings().join("; ") };
            return kept.read(key).ok_or_else(missing);
        }
        let looked_for = key_for(architecture, self.nvrtc.as_ref().map_or(AHEAD, LazyNvrtc::identity));
        let kernel = match self.cache.read(&looked_for) {
            Some(kernel) => kernel,
            None => {
                // The compiler that is loaded need not be the one that was looked for.
                let key = key_for(architecture, self.nvrtc()?.identity());
                let kept = if key == looked_for { None } else { self.cache.read(&key) };
                match kept {
                    Some(kernel) => kernel,
                    None => {
                        let target = self.supported(architecture)?;
                        let options = kernel_options(target, has_lines, definitions);
                        let kernel = self.compile_best(source, &options, alternatives, target, what)?;
                        self.cache.write(&key, &kernel);
                        kernel
                    }
                }
            }
        };
        if let Some((folder, key)) = ahead {
            // Over what another compiler has made.
            folder.write(&key, &kernel);
        }
        Ok(kernel)
    }

    /// By the first of the alternatives that spills nothing, or by the one that spills least.
    fn compile_best(
        &self,
        source: &str,
        options: &[String],
        alternatives: &[Vec<String>],
        architecture: Architecture,
        what: &dyn Fn() -> String,
    ) -> Result<CompiledKernel, CudaError> {
        let mut best: Option<CompiledKernel> = None;
        for alternative in alternatives {
            let options = [options, alternative].concat();
            let kernel = self.compile_uncached(source, &options, architecture, what)?;
            if kernel.resources.spill_bytes() == 0 {
                return Ok(kernel);
            }
            if best.as_ref().is_none_or(|best| kernel.resources.spill_bytes() < best.resources.spill_bytes()) {
                best = Some(kernel);
            }
        }
        best.map_or_else(|| self.compile_uncached(source, options, architecture, what), Ok)
    }

    fn nvrtc(&self) -> Result<&Nvrtc, CudaError> {
        const SEARCHED: &str = "nowhere: this compiler has kernels alone that were made ahead";
        let missing = || CudaError::CompilerMissing { searched: SEARCHED.to_owned() };
        self.nvrtc.as_ref().ok_or_else(missing)?.load()
    }

    /// The newest architecture of the compiler whose cubins run there: the same major version and no later minor one.
    fn supported(&self, architecture: Architecture) -> Result<Architecture, CudaError> {
        let nvrtc = self.nvrtc()?;
        let known = nvrtc.supported_architectures();
        let runs_there = |known: &Architecture| known.major == architecture.major && known.minor <= architecture.minor;
        let newest_first = known.iter().rev().map(|number| Architecture { major: number / 10, minor: number % 10 });
        newest_first.into_iter().find(runs_there).ok_or_else(|| CudaError::ArchitectureUnsupported {
            architecture,
            supported: known.iter().map(|number| format!("sm_{number}")).collect::<Vec<_>>().join(", "),
            version: format!("{}.{}", nvrtc.version().0, nvrtc.version().1),
        })
    }

    fn compile_uncached(
        &self,
        source: &str,
        options: &[String],
        architecture: Architecture,
        what: &dyn Fn() -> String,
    ) -> Result<CompiledKernel, CudaError> {
        let (cubin, log) = self.ask_nvrtc(Nvrtc::compile, source, options, architecture, what)?;
        Ok(CompiledKernel { cubin, resources: KernelResources::parse(&log) })
    }

    /// What the source becomes, and what was said of it.
    fn ask_nvrtc<T>(
        &self,
        compile: impl FnOnce(&Nvrtc, &CStr, &CStr, &[CString]) -> Result<(Option<T>, String), CudaError>,
        source: &str,
        options: &[String],
        architecture: Architecture,
        what: &dyn Fn() -> String,
    ) -> Result<(T, String), CudaError> {
        let failed =
            |log: String| CudaError::CompilationFailed { what: what(), architecture, options: options.join(" "), log };
        let text =
            |text: &str| CString::new(text).map_err(|_| failed(String::from("a zero byte in the source or an option")));
        let arguments = options.iter().map(|option| text(option)).collect::<Result<Vec<_>, _>>()?;
        match compile(self.nvrtc()?, &text(source)?, c"cuda/entry.cu", &arguments)? {
            (Some(made), log) => Ok((made, log)),
            (None, log) => Err(failed(log)),
        }
    }
}

/// The name of the one kernel in a scan kernel's cubin.
pub const ENTRY_POINT: &str = "lookback_entry";

/// What every kernel is compiled with: registers, spills and shared memory are in the log.
fn kernel_options(target: Architecture, has_lines: bool, definitions: &[String]) -> Vec<String> {
    let mut options = options(&target.to_string(), has_lines, definitions);
    options.push(String::from("--ptxas-options=-v"));
    options
}

/// What all source is compiled with.
fn options(target: &str, has_lines: bool, definitions: &[String]) -> Vec<String> {
    let mut options = vec![
        format!("--gpu-architecture={target}"),
        String::from("--std=c++17"),
        // Functions without an execution space are device functions: the headers are plain C++.
        String::from("--device-as-default-execution-space"),
    ];
    if has_lines {
        options.push(String::from("--generate-line-info"));
    }
    options.extend_from_slice(definitions);
    options
}

/// The key of an entry. Every part is preceded by its length, so that no two different inputs run together.
fn key(source: &str, options: &[String], compiler: &str) -> String {
    let mut hash = Sha256::new();
    for part in [source, compiler].into_iter().chain(options.iter().map(String::as_str)) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    crate::text::hexadecimal(&hash.finalize())
}

/// The macros that `cuda/entry.cu` reads, and what the problem asks of the compiler. The enums of `strategy` are declared in
/// the order of `cuda/abi.h`; a test below holds both together.
fn definitions(kernel: Kernel, problem: Problem, config: &KernelConfig, stages: u32) -> Vec<String> {
    let numbers = [
        ("VT", config.vt),
        ("BLOCK_THREADS", config.block_threads),
        ("MODE", config.mode as u32),
        ("PATTERN", config.pattern as u32),
        ("COMPOSITION", config.composition as u32),
        ("DESCRIPTOR", config.descriptor as u32),
        ("TILE_ORDER", config.tile_order as u32),
        ("ALIGNMENT", config.alignment as u32),
        ("STAGES", stages),
    ];
    // One kernel serves signed and unsigned where they agree bit for bit.
    [("KERNEL", kernel.name().to_owned()), ("PROBLEM", problem.canonical().cuda_type())]
        .into_iter()
        .chain(numbers.map(|(name, value)| (name, value.to_string())))
        .map(|(name, value)| format!("-DLOOKBACK_{name}={value}"))
        // As on the CPU device, a product is rounded before it is added.
        .chain(problem.is_reproducible().then(|| String::from("--fmad=false")))
        .collect()
}

/// Tiles that a block of the kernel holds at one time; 0 for those that hold theirs in registers.
///
/// # Errors
/// When a block of the architecture cannot hold a single one.
pub(crate) fn stages(
    kernel: Kernel,
    problem: Problem,
    config: &KernelConfig,
    architecture: Architecture,
) -> Result<u32, CudaError> {
    if !kernel.has_ring() {
        return Ok(0);
    }
    let shared_bytes = architecture.shared_bytes();
    let ring = Ring::of((kernel, problem, *config));
    match ring.most_stages(shared_bytes) {
        0 => {
            let tile_bytes = ring.stage_bytes;
            Err(CudaError::TileTooLarge { tile_bytes, architecture, shared_bytes })
        }
        stages => Ok(stages),
    }
}

/// Whether the architecture has the clusters that the kernel may need.
fn check_clusters(kernel: Kernel, architecture: Architecture) -> Result<(), CudaError> {
    if !kernel.is_cluster() || architecture.has_clusters() {
        return Ok(());
    }
    let Architecture { major, minor } = architecture;
    Err(ConfigError::NoClusters { strategy: kernel.strategy().name(), major, minor }.into())
}

/// What a kernel is, for messages.
fn describe(kernel: Kernel, problem: Problem, config: &KernelConfig) -> String {
    let KernelConfig { vt, block_threads, mode, pattern, composition, descriptor, tile_order, alignment } = *config;
    format!(
        "kernel '{}' for {problem} (VT {vt}, {block_threads} threads, mode {mode}, pattern {pattern}, \
         composition {composition}, descriptor {descriptor}, tile order {tile_order}, alignment {alignment})",
        kernel.name()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi;
    use crate::element::{Axis, Defined, Definition, ElementType, Instance, Operator, Segments};
    use crate::strategy::plan::{Plan, ScanRequest, Step};
    use crate::strategy::{Alignment, Composition, Descriptor, Mode, Pattern, ScanConfig, Strategy, TileOrder};

    #[test]
    fn the_numbers_of_the_choices_are_those_of_the_contract() {
        assert_eq!(Mode::Inclusive as u32, abi::LOOKBACK_MODE_INCLUSIVE);
        assert_eq!(Mode::Exclusive as u32, abi::LOOKBACK_MODE_EXCLUSIVE);
        assert_eq!(Mode::InclusiveMinusInput as u32, abi::LOOKBACK_MODE_INCLUSIVE_MINUS_INPUT);
        assert_eq!(Pattern::Shuffle as u32, abi::LOOKBACK_PATTERN_SHUFFLE);
        assert_eq!(Pattern::HillisSteele as u32, abi::LOOKBACK_PATTERN_HILLIS_STEELE);
        assert_eq!(Pattern::KoggeStone as u32, abi::LOOKBACK_PATTERN_KOGGE_STONE);
        assert_eq!(Pattern::BrentKung as u32, abi::LOOKBACK_PATTERN_BRENT_KUNG);
        assert_eq!(Pattern::Sklansky as u32, abi::LOOKBACK_PATTERN_SKLANSKY);
        assert_eq!(Pattern::Blelloch as u32, abi::LOOKBACK_PATTERN_BLELLOCH);
        assert_eq!(Composition::ScanThenPropagate as u32, abi::LOOKBACK_COMPOSITION_SCAN_THEN_PROPAGATE);
        assert_eq!(Composition::ReduceThenScan as u32, abi::LOOKBACK_COMPOSITION_REDUCE_THEN_SCAN);
        assert_eq!(Composition::Block as u32, abi::LOOKBACK_COMPOSITION_BLOCK);
        assert_eq!(Descriptor::Packed64 as u32, abi::LOOKBACK_DESCRIPTOR_PACKED_64);
        assert_eq!(Descriptor::Packed128 as u32, abi::LOOKBACK_DESCRIPTOR_PACKED_128);
        assert_eq!(Descriptor::Split as u32, abi::LOOKBACK_DESCRIPTOR_SPLIT);
        assert_eq!(TileOrder::Ticket as u32, abi::LOOKBACK_TILE_ORDER_TICKET);
        assert_eq!(TileOrder::Static as u32, abi::LOOKBACK_TILE_ORDER_STATIC);
        assert_eq!(Alignment::Any as u32, abi::LOOKBACK_ALIGNMENT_ANY);
        assert_eq!(Alignment::Vectors as u32, abi::LOOKBACK_ALIGNMENT_VECTORS);
    }

    #[test]
    fn a_kept_kernel_is_there_before_the_compiler_is_loaded() {
        const IDENTITY: &str = "libnvrtc.so.99, 7 bytes";
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = Cache::in_folder(folder.path());
        let compiler = Compiler { nvrtc: Some(LazyNvrtc::named(IDENTITY)), cache, ahead: None };
        let architecture = Architecture { major: 9, minor: 0 };
        let kept = CompiledKernel { cubin: b"a kernel".to_vec(), resources: KernelResources::default() };
        let key = key("source", &kernel_options(architecture, true, &[]), IDENTITY);
        compiler.cache.write(&key, &kept);
        let compile = |source: &str| compiler.compile(source, true, &[], &[], architecture, &|| "it".to_owned());
        assert_eq!(compile("source").expect("it is kept"), kept);
        let is_loaded = || compiler.nvrtc.as_ref().is_some_and(LazyNvrtc::is_loaded);
        assert!(!is_loaded());
        // Another one needs it, where there is one.
        assert!(compile("no source").is_err());
        assert_eq!(is_loaded(), Nvrtc::shared().is_ok());
    }

    /// `None` where there is none and none is required.
    fn compiler() -> Option<Compiler> {
        match Compiler::new() {
            Ok(compiler) => Some(compiler),
            Err(error) if error.is_absence() && std::env::var_os("LOOKBACK_REQUIRE_CUDA_COMPILER").is_none() => {
                println!("skipped: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// In reverse, in segments, of several arrays; and the scan of their totals. Each for two GPUs in turn, because a compilation
    /// takes a second.
    #[test]
    fn what_a_user_defines_is_compiled_for_every_gpu() {
        const GPUS: usize = Architecture::CHECKED.len();
        let Some(compiler) = compiler() else { return };
        let recurrence = Definition::linear_recurrence::<f32>().expect("numbers").define().expect("a definition");
        let sums = Definition::of_numbers(Operator::Sum, ElementType::F16, ElementType::F64).expect("numbers");
        let by_key = sums.define().expect("a definition").in_segments(Segments::Keys(ElementType::U64));
        let columns = Segments::Columns(Axis::new(1 << 10, 1 << 5));
        // Whose rows are elements.
        let narrow = Segments::Columns(Axis::new(1 << 19, 2));
        // No instruction loads them, or with a mark.
        let doubles = Definition::linear_recurrence::<f64>().expect("numbers").define().expect("a definition");
        let triples = Definition::new::<[f32; 3]>("triples", "float3").identity("{}").combine("return right;");
        let triples = triples.input::<f32>("x").load("return {x, x, x};").output::<f32>("y").store("y = state.z;");
        let triples = triples.define().expect("a definition");
        let words = Definition::new::<[u32; 8]>("eight words", "words").declare("struct words { u32 word[8]; };");
        let words = words.identity("{}").combine("return right;").input::<u32>("x").load("return {{x}};");
        let words = words.output::<u32>("y").store("y = state.word[7];").define().expect("a definition");
        let mut steps = Vec::new();
        for (strategy, problem, mode) in [
            (Strategy::Lookahead, doubles.in_segments(Segments::Rows { have_states: false }), Mode::Inclusive),
            (Strategy::Lookahead, triples, Mode::Exclusive),
            (
                Strategy::Lookahead,
                recurrence.reversed(true).in_segments(Segments::Rows { have_states: true }),
                Mode::Inclusive,
            ),
            (
                Strategy::Lookahead,
                recurrence.in_segments(Segments::Rows { have_states: true }).with_final_state(true),
                Mode::Exclusive,
            ),
            (Strategy::Lookahead, doubles.with_final_state(true), Mode::Inclusive),
            (Strategy::Lookback, doubles.reversed(true).with_final_state(true), Mode::Inclusive),
            (Strategy::Lookback, recurrence.in_segments(columns).with_final_state(true), Mode::Inclusive),
            (Strategy::Lookahead, recurrence.in_segments(columns).with_final_state(true), Mode::Inclusive),
            (Strategy::Lookback, recurrence.in_segments(Segments::HeadFlags), Mode::Exclusive),
            (Strategy::Lookahead, recurrence.in_segments(Segments::Offsets).counted(), Mode::Inclusive),
            (Strategy::ReduceThenScan, by_key, Mode::Inclusive),
            (Strategy::Lookback, recurrence.total(), Mode::Inclusive),
            (Strategy::Lookback, doubles.total(), Mode::Inclusive),
            (Strategy::Lookback, recurrence.reversed(true).in_segments(columns), Mode::Exclusive),
            (Strategy::Lookback, triples.in_segments(columns), Mode::Inclusive),
            (Strategy::Lookback, triples.in_segments(columns).strided(), Mode::Inclusive),
            (
                Strategy::OneWave,
                recurrence.in_segments(Segments::Rows { have_states: true }).strided(),
                Mode::Exclusive,
            ),
            (Strategy::Lookahead, triples.in_segments(columns), Mode::Inclusive),
            (Strategy::Lookback, words.in_segments(columns), Mode::Inclusive),
            (Strategy::Lookahead, words.in_segments(columns), Mode::Exclusive),
            (Strategy::Lookahead, recurrence.reversed(true).in_segments(columns), Mode::Exclusive),
            (Strategy::Lookahead, recurrence.reversed(true).in_segments(narrow), Mode::Exclusive),
        ] {
            // Tiles that every GPU holds.
            let (problem, config) = (Problem::from(problem), ScanConfig { vt: 4, ..ScanConfig::default() });
            let n = 1 << 20;
            let aligned = ScanRequest::aligned(Instance::SUM_OF_WORDS, strategy, mode, config, n);
            let request = ScanRequest { problem, ..aligned };
            steps.extend(Plan::new(&request).expect("a plan").steps);
        }
        for (turn, step) in steps.iter().enumerate() {
            for gpu in Architecture::CHECKED.into_iter().skip(turn % (GPUS / 2)).step_by(GPUS / 2) {
                let made = compiler.scan_kernel(step.kernel, step.problem, &step.config, gpu);
                made.unwrap_or_else(|error| panic!("{error}"));
            }
        }
        assert!(steps.len() > GPUS, "each GPU has had several");
    }

    /// What no output shows of a state is left out by the compiler, unless the last one is asked for.
    #[test]
    fn a_recurrence_multiplies_its_factors_for_a_final_state_alone() {
        let Some(compiler) = compiler() else { return };
        let recurrence = Definition::linear_recurrence::<f32>().expect("numbers").define().expect("a definition");
        for strategy in [Strategy::Lookback, Strategy::Lookahead] {
            let products = |defined: Defined| {
                let config = ScanConfig { vt: 16, ..ScanConfig::default() };
                let aligned = ScanRequest::aligned(Instance::SUM_OF_WORDS, strategy, Mode::Inclusive, config, 1 << 20);
                let plan = Plan::new(&ScanRequest { problem: defined.into(), ..aligned }).expect("a plan");
                let Step { kernel, problem, config, .. } = plan.steps[0];
                let ptx = compiler.ptx(kernel, problem, &config, Architecture::HOPPER, Variant::default());
                ptx.unwrap_or_else(|error| panic!("{error}")).matches("mul.f32").count()
            };
            let (without, with) = (products(recurrence), products(recurrence.with_final_state(true)));
            assert!(without + 16 <= with, "{strategy}: {without} products without a final state, {with} with one");
        }
    }

    #[test]
    fn a_tile_that_no_block_can_hold_is_refused_where_blocks_hold_tiles() {
        let stages = |kernel| {
            let sum = Instance::new(ElementType::U32, Operator::Sum).expect("u32 has a sum");
            let config = KernelConfig {
                vt: 64,
                block_threads: 928,
                mode: Mode::Inclusive,
                pattern: Pattern::Shuffle,
                composition: Composition::ReduceThenScan,
                descriptor: Descriptor::Packed64,
                tile_order: TileOrder::Ticket,
                alignment: Alignment::Any,
            };
            stages(kernel, sum.into(), &config, Architecture::HOPPER)
        };
        assert!(matches!(stages(Kernel::Lookahead), Err(CudaError::TileTooLarge { tile_bytes: 237_696, .. })));
        assert!(matches!(stages(Kernel::Lookback), Ok(0)));
    }

    #[test]
    fn resources_are_read_from_the_assemblers_log() {
        let log = "ptxas info    : 4 bytes gmem\n\
                   ptxas info    : Compiling entry function 'entry' for 'sm_90'\n\
                   ptxas info    : Function properties for entry\n\
                   ptxas         .     256 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n\
                   ptxas info    : Used 38 registers, used 1 barriers, 256 bytes cumulative stack size, 400 bytes smem\n\
                   ptxas info    : Compile time = 7.028 ms\n\
                   ptxas info    : Function properties for _Z1fi\n\
                   ptxas         .     0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n";
        let expected = KernelResources {
            registers: 38,
            spill_store_bytes: 20,
            spill_load_bytes: 20,
            stack_bytes: 256,
            shared_bytes: 400,
        };
        assert_eq!(KernelResources::parse(log), expected);
        assert_eq!(KernelResources::from_bytes(expected.to_bytes()), expected);
    }

    #[test]
    fn the_key_depends_on_every_part_and_on_where_parts_end() {
        let key = |source: &str, options: &[&str], compiler: &str| {
            super::key(source, &options.iter().map(|&option| option.to_owned()).collect::<Vec<_>>(), compiler)
        };
        let keys = [
            key("a", &["b", "c"], "d"),
            key("x", &["b", "c"], "d"),
            key("a", &["bc"], "d"),
            key("a", &["b", "x"], "d"),
            key("a", &["b", "c"], "x"),
            key("ad", &["b", "c"], ""),
        ];
        for (index, one) in keys.iter().enumerate() {
            assert!(keys[index + 1..].iter().all(|other| other != one));
            assert_eq!(one.len(), 64);
        }
    }

    fn kernel() -> CompiledKernel {
        CompiledKernel {
            cubin: (0..=255).collect(),
            resources: KernelResources { registers: 32, shared_bytes: 100, ..KernelResources::default() },
        }
    }

    #[test]
    fn an_entry_comes_back_as_it_was_written() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = Cache::in_folder(folder.path().join("below"));
        assert_eq!(cache.read("k"), None);
        cache.write("k", &kernel());
        assert_eq!(cache.read("k"), Some(kernel()));
        assert_eq!(cache.warnings(), Vec::<String>::new());
        let left = std::fs::read_dir(folder.path().join("below")).expect("it was made").count();
        assert_eq!(left, 1, "no temporary file stays behind");
    }

    #[test]
    fn every_damage_to_an_entry_is_seen_and_mended() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = Cache::in_folder(folder.path());
        let whole = encode_entry(&kernel());
        let path = folder.path().join("k.cubin");
        let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|length| whole[..length].to_vec()).collect();
        damaged.extend((0..whole.len()).map(|index| {
            let mut bytes = whole.clone();
            bytes[index] ^= 1;
            bytes
        }));
        damaged.push([whole.as_slice(), b"x"].concat());
        for bytes in damaged {
            std::fs::write(&path, &bytes).expect("a file");
            assert_eq!(cache.read("k"), None);
        }
        assert!(cache.warnings().iter().any(|warning| warning.contains("damaged")));
        cache.write("k", &kernel());
        assert_eq!(cache.read("k"), Some(kernel()));
    }

    #[cfg(unix)]
    #[test]
    fn an_entry_that_is_no_file_is_replaced_and_keeps_nobody_waiting() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = Cache::in_folder(folder.path());
        let path = folder.path().join("k.cubin");
        let pipe = |path: &Path| std::process::Command::new("mkfifo").arg(path).status().is_ok_and(|end| end.success());
        assert!(pipe(&path), "a pipe that nobody writes to");
        assert_eq!(cache.read("k"), None);
        cache.write("k", &kernel());
        assert_eq!(cache.read("k"), Some(kernel()));
        std::fs::remove_file(&path).expect("the entry");
        std::os::unix::fs::symlink("/dev/zero", &path).expect("a link");
        assert_eq!(cache.read("k"), None);
        cache.write("k", &kernel());
        assert_eq!(cache.read("k"), Some(kernel()));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_a_warning_and_no_more() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("a file");
        std::fs::write(&file, "").expect("a file");
        let cache = Cache::in_folder(&file);
        assert_eq!(cache.read("k"), None);
        cache.write("k", &kernel());
        let warnings = cache.warnings().join("; ");
        assert!(warnings.contains("cannot be kept") && warnings.contains("a folder that can be written"), "{warnings}");
        assert!(!warnings.contains("os error"), "{warnings}");
    }
}
