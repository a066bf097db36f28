//! Finding CUDA on a machine: the driver's library, NVRTC, nvcc, ncu.
//!
//! cudarc panics where a library is missing, and its own search knows neither the pip wheels nor a
//! toolkit that is not on the library path. So the driver is probed here before cudarc may touch it, and
//! NVRTC is loaded here, through the functions that the crate needs.
//!
//! NVRTC is looked for, in this order, below
//!
//! 1. `LOOKBACK_CUDA_HOME`, where `scripts/install-cuda.sh` was told to install,
//! 2. the prefix of the compiler that `NVCC` names,
//! 3. `CUDA_HOME`, then `CUDA_PATH`,
//! 4. the prefix of the `nvcc` on `PATH`,
//! 5. the library path of the dynamic linker,
//! 6. `~/.local/share/lookback/cuda`, where `scripts/install-cuda.sh` installs by itself,
//! 7. the pip wheels of the active virtual environment (`VIRTUAL_ENV`),
//! 8. `/usr/local/cuda` and `/opt/cuda`.

use super::error::CudaError;
use libloading::Library;
use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Whether the NVIDIA driver's library is there and has what this build calls. Every path to a driver
/// call goes through here first, because cudarc panics without the library.
///
/// # Errors
/// [`CudaError::DriverLibraryMissing`] or [`CudaError::DriverTooOld`].
pub fn probe_driver() -> Result<(), CudaError> {
    /// What the probe found; errors are made anew for each caller because they are not `Clone`.
    enum Probe {
        Usable,
        Missing,
        TooOld(&'static str),
    }
    static PROBE: OnceLock<Probe> = OnceLock::new();
    // The functions that came last into the driver, among those that this crate reaches.
    #[cfg(feature = "cuda-13000")]
    const YOUNGEST: &[&str] =
        &["cuMemAllocAsync", "cuGraphInstantiateWithFlags", "cuLaunchKernelEx", "cuEventElapsedTime_v2"];
    #[cfg(not(feature = "cuda-13000"))]
    const YOUNGEST: &[&str] = &["cuMemAllocAsync", "cuGraphInstantiateWithFlags", "cuLaunchKernelEx"];
    let names = cudarc::get_lib_name_candidates("cuda");
    let probe = PROBE.get_or_init(|| {
        for name in &names {
            // SAFETY: loading libcuda runs its initialisers, which is what every CUDA program does; its
            // functions are looked up here and not called.
            let Ok(library) = (unsafe { Library::new(name) }) else { continue };
            for &function in YOUNGEST {
                // SAFETY: the symbol is only tested for, never called or read.
                if unsafe { library.get::<*const c_void>(function.as_bytes()) }.is_err() {
                    return Probe::TooOld(function);
                }
            }
            return Probe::Usable;
        }
        Probe::Missing
    });
    match probe {
        Probe::Usable => Ok(()),
        Probe::TooOld(function) => Err(CudaError::DriverTooOld { function }),
        Probe::Missing => {
            // The first is what a development package brings, the last what a driver does.
            Err(CudaError::DriverLibraryMissing { searched: String::from("libcuda.so, libcuda.so.1") })
        }
    }
}

/// Where to look: the environment variables that count, and the home of the installing script.
/// A value of its own, so that tests need not change the process's environment.
#[derive(Debug, Clone, Default)]
pub struct SearchPath {
    /// `LOOKBACK_CUDA_HOME`
    pub lookback_cuda_home: Option<PathBuf>,
    /// `NVCC`
    pub nvcc: Option<PathBuf>,
    /// `CUDA_HOME`
    pub cuda_home: Option<PathBuf>,
    /// `CUDA_PATH`
    pub cuda_path: Option<PathBuf>,
    /// `PATH`
    pub path: Option<OsString>,
    /// Whether the dynamic linker may look for the library by its name.
    pub linker: bool,
    /// Where `scripts/install-cuda.sh` installs by itself.
    pub installed: Option<PathBuf>,
    /// `VIRTUAL_ENV`
    pub virtual_env: Option<PathBuf>,
    /// Prefixes at the usual places.
    pub usual: Vec<PathBuf>,
    /// Where Nsight Compute is installed by itself, in a folder a version.
    pub nsight_compute: Option<PathBuf>,
}

/// A place to look at, with the reason for it.
struct Place {
    reason: &'static str,
    prefix: PathBuf,
}

impl SearchPath {
    /// The process's environment.
    pub fn from_environment() -> Self {
        let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self {
            lookback_cuda_home: path("LOOKBACK_CUDA_HOME"),
            nvcc: path("NVCC"),
            cuda_home: path("CUDA_HOME"),
            cuda_path: path("CUDA_PATH"),
            path: std::env::var_os("PATH"),
            linker: true,
            installed: directories::ProjectDirs::from("", "", "lookback").map(|places| places.data_dir().join("cuda")),
            virtual_env: path("VIRTUAL_ENV"),
            usual: vec![PathBuf::from("/usr/local/cuda"), PathBuf::from("/opt/cuda")],
            nsight_compute: Some(PathBuf::from("/opt/nvidia/nsight-compute")),
        }
    }

    /// The executable `nvcc`: `NVCC`, then `bin/nvcc` below the prefixes, in the order of the module's list.
    ///
    /// # Errors
    /// [`CudaError::CompilerMissing`] with every place that was looked at.
    pub fn find_nvcc(&self) -> Result<PathBuf, CudaError> {
        let mut searched = Vec::new();
        if let Some(nvcc) = &self.nvcc {
            match self.resolve_program(nvcc) {
                Some(nvcc) => return Ok(nvcc),
                None => searched.push(format!("NVCC={}", nvcc.display())),
            }
        }
        for place in self.places_before_linker().into_iter().chain(self.places_after_linker()) {
            for prefix in prefixes_below(&place.prefix) {
                let nvcc = prefix.join("bin/nvcc");
                if nvcc.is_file() {
                    return Ok(nvcc);
                }
            }
            searched.push(format!("{} {}", place.reason, place.prefix.display()));
        }
        Err(CudaError::CompilerMissing { searched: describe(&searched) })
    }

    /// The executable `ncu` of Nsight Compute: on `PATH`, then `bin/ncu` below the prefixes, in the order of the module's list,
    /// then the newest where it is installed by itself.
    pub fn find_ncu(&self) -> Option<PathBuf> {
        let on_path = self.resolve_program(Path::new("ncu"));
        let places = self.places_before_linker().into_iter().chain(self.places_after_linker());
        let below = places.flat_map(|place| prefixes_below(&place.prefix)).map(|prefix| prefix.join("bin/ncu"));
        let versions = self.nsight_compute.iter().flat_map(|folder| sorted_entries(folder, "").into_iter().rev());
        let by_itself = versions.map(|version| version.join("ncu"));
        on_path.into_iter().chain(below).chain(by_itself).find(|ncu| ncu.is_file())
    }

    /// Loads NVRTC from the first place that has it.
    ///
    /// # Errors
    /// [`CudaError::CompilerMissing`] with every place that was looked at, or
    /// [`CudaError::CompilerUnusable`] for a library that does not load.
    pub fn find_nvrtc(&self) -> Result<Nvrtc, CudaError> {
        let mut searched = Vec::new();
        let mut first_failure = None;
        let mut look_at = |place: Place, searched: &mut Vec<String>| {
            for library in nvrtc_libraries_below(&place.prefix) {
                match Nvrtc::load(&library) {
                    Ok(nvrtc) => return Some(nvrtc),
                    Err(error) => {
                        searched.push(error.to_string());
                        first_failure.get_or_insert(error);
                    }
                }
            }
            searched.push(format!("{} {}", place.reason, place.prefix.display()));
            None
        };
        for place in self.places_before_linker() {
            if let Some(nvrtc) = look_at(place, &mut searched) {
                return Ok(nvrtc);
            }
        }
        if self.linker {
            for name in NVRTC_NAMES {
                if let Ok(nvrtc) = Nvrtc::load(Path::new(name)) {
                    return Ok(nvrtc);
                }
            }
            searched.push(format!("library path ({})", NVRTC_NAMES.join(", ")));
        }
        for place in self.places_after_linker() {
            if let Some(nvrtc) = look_at(place, &mut searched) {
                return Ok(nvrtc);
            }
        }
        // A library that is there and does not load says more than the list of places without one.
        Err(first_failure.unwrap_or_else(|| CudaError::CompilerMissing { searched: describe(&searched) }))
    }

    /// The file that [`Self::find_nvrtc`] tries first, if the dynamic linker need not be asked before. Loads nothing.
    fn first_nvrtc(&self) -> Option<PathBuf> {
        self.places_before_linker().iter().find_map(|place| nvrtc_libraries_below(&place.prefix).into_iter().next())
    }

    fn places_before_linker(&self) -> Vec<Place> {
        let mut places = Vec::new();
        let mut add = |reason, prefix: Option<PathBuf>| {
            places.extend(prefix.map(|prefix| Place { reason, prefix }));
        };
        add("LOOKBACK_CUDA_HOME", self.lookback_cuda_home.clone());
        add("NVCC", self.nvcc.as_ref().and_then(|nvcc| prefix_of_program(&self.resolve_program(nvcc)?)));
        add("CUDA_HOME", self.cuda_home.clone());
        add("CUDA_PATH", self.cuda_path.clone());
        add("nvcc on PATH", self.resolve_program(Path::new("nvcc")).and_then(|nvcc| prefix_of_program(&nvcc)));
        places
    }

    fn places_after_linker(&self) -> Vec<Place> {
        let mut places = Vec::new();
        places.extend(self.installed.clone().map(|prefix| Place { reason: "scripts/install-cuda.sh", prefix }));
        places.extend(self.virtual_env.clone().map(|prefix| Place { reason: "VIRTUAL_ENV", prefix }));
        places.extend(self.usual.iter().cloned().map(|prefix| Place { reason: "usual place", prefix }));
        places
    }

    /// A program by path or, if it is a bare name, by `PATH`.
    fn resolve_program(&self, program: &Path) -> Option<PathBuf> {
        if program.components().count() > 1 {
            return program.is_file().then(|| program.to_owned());
        }
        let path = self.path.as_ref()?;
        std::env::split_paths(path).map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
    }
}

/// `/usr/local/cuda/bin/nvcc` → `/usr/local/cuda`, links resolved.
fn prefix_of_program(program: &Path) -> Option<PathBuf> {
    let program = program.canonicalize().ok()?;
    Some(program.parent()?.parent()?.to_owned())
}

fn describe(searched: &[String]) -> String {
    if searched.is_empty() { String::from("no place at all") } else { searched.join("; ") }
}

/// File names of NVRTC. The unversioned one comes with a toolkit, the others with wheels and packages too.
const NVRTC_NAMES: [&str; 3] = ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"];

/// Toolkit prefixes at or below a folder: itself, the wheels that `pip install --target` puts there, and
/// those of a virtual environment.
fn prefixes_below(folder: &Path) -> Vec<PathBuf> {
    let mut roots = vec![folder.to_owned()];
    roots.extend(sorted_entries(&folder.join("lib"), "python3").into_iter().map(|python| python.join("site-packages")));
    let mut prefixes = Vec::new();
    for root in roots {
        prefixes.push(root.clone());
        // CUDA 13 wheels share one prefix; CUDA 12 wheels have one folder each.
        for wheel in ["nvidia/cu13", "nvidia/cuda_nvrtc", "nvidia/cuda_nvcc"] {
            prefixes.push(root.join(wheel));
        }
    }
    prefixes.retain(|prefix| prefix.is_dir());
    prefixes
}

/// Every NVRTC at or below a folder, best first.
fn nvrtc_libraries_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for prefix in prefixes_below(folder) {
        for library_folder in ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"] {
            for name in NVRTC_NAMES {
                let library = prefix.join(library_folder).join(name);
                if library.is_file() {
                    found.push(library);
                }
            }
        }
    }
    found
}

/// Entries of a folder whose name starts so, sorted; none if the folder cannot be read.
fn sorted_entries(folder: &Path, start: &str) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(start))
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    entries
}

type NvrtcProgram = *mut c_void;
type NvrtcResult = c_int;

/// The functions of NVRTC that this crate calls; signatures from `nvrtc.h`, the same in CUDA 12 and 13.
struct Functions {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> NvrtcResult,
    supported_count: unsafe extern "C" fn(*mut c_int) -> NvrtcResult,
    supported: unsafe extern "C" fn(*mut c_int) -> NvrtcResult,
    error_string: unsafe extern "C" fn(NvrtcResult) -> *const c_char,
    create_program: unsafe extern "C" fn(
        *mut NvrtcProgram,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> NvrtcResult,
    destroy_program: unsafe extern "C" fn(*mut NvrtcProgram) -> NvrtcResult,
    compile_program: unsafe extern "C" fn(NvrtcProgram, c_int, *const *const c_char) -> NvrtcResult,
    log_size: unsafe extern "C" fn(NvrtcProgram, *mut usize) -> NvrtcResult,
    log: unsafe extern "C" fn(NvrtcProgram, *mut c_char) -> NvrtcResult,
    ptx_size: unsafe extern "C" fn(NvrtcProgram, *mut usize) -> NvrtcResult,
    ptx: unsafe extern "C" fn(NvrtcProgram, *mut c_char) -> NvrtcResult,
    cubin_size: unsafe extern "C" fn(NvrtcProgram, *mut usize) -> NvrtcResult,
    cubin: unsafe extern "C" fn(NvrtcProgram, *mut c_char) -> NvrtcResult,
}

/// The run-time compiler of CUDA, loaded.
pub struct Nvrtc {
    functions: Functions,
    path: PathBuf,
    identity: String,
    version: (i32, i32),
    supported: Vec<i32>,
    // Last, so that the functions above never outlive their code. The second library is NVRTC's own
    // helper, which it opens by bare name and would not find outside the library path.
    _library: Library,
    _builtins: Vec<Library>,
}

impl std::fmt::Debug for Nvrtc {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Nvrtc").field("path", &self.path).field("version", &self.version).finish()
    }
}

impl Nvrtc {
    /// The process's NVRTC, found once: [`SearchPath::find_nvrtc`] in the process's environment.
    ///
    /// # Errors
    /// As [`SearchPath::find_nvrtc`]; a failure is not remembered.
    pub fn shared() -> Result<Arc<Self>, CudaError> {
        static SHARED: OnceLock<Arc<Nvrtc>> = OnceLock::new();
        if let Some(nvrtc) = SHARED.get() {
            return Ok(Arc::clone(nvrtc));
        }
        let nvrtc = Arc::new(SearchPath::from_environment().find_nvrtc()?);
        Ok(Arc::clone(SHARED.get_or_init(|| nvrtc)))
    }

    /// Loads a library by path, or by name through the dynamic linker.
    fn load(path: &Path) -> Result<Self, CudaError> {
        let unusable = |reason: String| CudaError::CompilerUnusable { path: path.to_owned(), reason };
        let mut builtins = Vec::new();
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            for helper in sorted_entries(folder, "libnvrtc-builtins.so") {
                // SAFETY: a data-only library of NVIDIA's toolkit; its initialisers are the C runtime's.
                // Loaded before NVRTC asks for it by name, which the linker then answers from memory.
                builtins.extend(unsafe { Library::new(&helper) });
            }
        }
        // SAFETY: NVRTC's initialisers have no preconditions.
        let library = unsafe { Library::new(path) }.map_err(|error| unusable(error.to_string()))?;
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the field's type is the signature that nvrtc.h gives this function.
                *unsafe { library.get(concat!($name, "\0").as_bytes()) }.map_err(|error| unusable(error.to_string()))?
            };
        }
        let functions = Functions {
            version: function!("nvrtcVersion"),
            supported_count: function!("nvrtcGetNumSupportedArchs"),
            supported: function!("nvrtcGetSupportedArchs"),
            error_string: function!("nvrtcGetErrorString"),
            create_program: function!("nvrtcCreateProgram"),
            destroy_program: function!("nvrtcDestroyProgram"),
            compile_program: function!("nvrtcCompileProgram"),
            log_size: function!("nvrtcGetProgramLogSize"),
            log: function!("nvrtcGetProgramLog"),
            ptx_size: function!("nvrtcGetPTXSize"),
            ptx: function!("nvrtcGetPTX"),
            cubin_size: function!("nvrtcGetCUBINSize"),
            cubin: function!("nvrtcGetCUBIN"),
        };
        let path = loaded_path(path);
        let mut nvrtc = Self {
            functions,
            identity: identity_of(&path),
            path,
            version: (0, 0),
            supported: Vec::new(),
            _library: library,
            _builtins: builtins,
        };
        let (mut major, mut minor) = (0, 0);
        // SAFETY: two valid pointers to int.
        nvrtc.check(unsafe { (nvrtc.functions.version)(&raw mut major, &raw mut minor) }, "nvrtcVersion")?;
        nvrtc.version = (major, minor);
        if !nvrtc.path.exists() {
            // The linker does not say which file it has taken.
            nvrtc.identity = format!("nvrtc {major}.{minor}");
        }
        let mut count = 0;
        // SAFETY: a valid pointer to int.
        nvrtc.check(unsafe { (nvrtc.functions.supported_count)(&raw mut count) }, "nvrtcGetNumSupportedArchs")?;
        let mut supported = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: room for as many numbers as the function before said there are.
        nvrtc.check(unsafe { (nvrtc.functions.supported)(supported.as_mut_ptr()) }, "nvrtcGetSupportedArchs")?;
        supported.sort_unstable();
        nvrtc.supported = supported;
        Ok(nvrtc)
    }

    /// The library's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Major and minor version of CUDA.
    pub fn version(&self) -> (i32, i32) {
        self.version
    }

    /// What tells this compiler from every other: part of a cached kernel's key.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// The architectures it compiles for, as 10 · major + minor, ascending.
    pub fn supported_architectures(&self) -> &[i32] {
        &self.supported
    }

    fn check(&self, result: NvrtcResult, call: &str) -> Result<(), CudaError> {
        if result == 0 {
            return Ok(());
        }
        // SAFETY: the function returns a static string for every number.
        let text = unsafe { CStr::from_ptr((self.functions.error_string)(result)) };
        Err(CudaError::CompilerUnusable {
            path: self.path.clone(),
            reason: format!("{call} returned {}", text.to_string_lossy()),
        })
    }

    /// Compiles one source, without headers, to a cubin. A source that does not compile is no error here.
    ///
    /// # Errors
    /// [`CudaError::CompilerUnusable`] when NVRTC itself fails, for example without its helper library.
    pub(crate) fn compile(
        &self,
        source: &CStr,
        name: &CStr,
        options: &[CString],
    ) -> Result<(Option<Vec<u8>>, String), CudaError> {
        let (guard, log) = self.run(source, name, options)?;
        let Some(guard) = guard else { return Ok((None, log)) };
        let mut bytes = 0_usize;
        // SAFETY: a live program and a valid pointer.
        self.check(unsafe { (self.functions.cubin_size)(guard.program, &raw mut bytes) }, "nvrtcGetCUBINSize")?;
        let mut cubin = vec![0_u8; bytes];
        // SAFETY: room for as many bytes as the function before said there are.
        self.check(unsafe { (self.functions.cubin)(guard.program, cubin.as_mut_ptr().cast()) }, "nvrtcGetCUBIN")?;
        Ok((Some(cubin), log))
    }

    /// The same to PTX: the text, or nothing if the source does not compile, and everything the compiler said.
    ///
    /// # Errors
    /// As [`Self::compile`].
    pub(crate) fn compile_to_ptx(
        &self,
        source: &CStr,
        name: &CStr,
        options: &[CString],
    ) -> Result<(Option<String>, String), CudaError> {
        let (guard, log) = self.run(source, name, options)?;
        let Some(guard) = guard else { return Ok((None, log)) };
        let mut bytes = 0_usize;
        // SAFETY: a live program and a valid pointer.
        self.check(unsafe { (self.functions.ptx_size)(guard.program, &raw mut bytes) }, "nvrtcGetPTXSize")?;
        let mut text = vec![0_u8; bytes];
        // SAFETY: room for as many bytes as the function before said there are, the closing zero included.
        self.check(unsafe { (self.functions.ptx)(guard.program, text.as_mut_ptr().cast()) }, "nvrtcGetPTX")?;
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        Ok((Some(String::from_utf8_lossy(&text[..end]).into_owned()), log))
    }

    /// Runs the compiler: the compiled program, or nothing if the source does not compile, and what it said.
    fn run(
        &self,
        source: &CStr,
        name: &CStr,
        options: &[CString],
    ) -> Result<(Option<ProgramGuard<'_>>, String), CudaError> {
        const COMPILATION_ERROR: NvrtcResult = 6;
        let mut program: NvrtcProgram = std::ptr::null_mut();
        // SAFETY: source and name are C strings that NVRTC copies; no headers are passed.
        let created = unsafe {
            (self.functions.create_program)(
                &raw mut program,
                source.as_ptr(),
                name.as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
            )
        };
        self.check(created, "nvrtcCreateProgram")?;
        let guard = ProgramGuard { nvrtc: self, program };
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
        // SAFETY: `program` is live until `guard` drops; `count` C strings that live past the call.
        let compiled = unsafe { (self.functions.compile_program)(guard.program, count, pointers.as_ptr()) };
        let log = self.log_of(&guard)?;
        if compiled == COMPILATION_ERROR {
            return Ok((None, log));
        }
        if compiled != 0 {
            // SAFETY: the function returns a static string for every number.
            let text = unsafe { CStr::from_ptr((self.functions.error_string)(compiled)) };
            return Err(CudaError::CompilerUnusable {
                path: self.path.clone(),
                reason: format!("nvrtcCompileProgram returned {}: {}", text.to_string_lossy(), log.trim()),
            });
        }
        Ok((Some(guard), log))
    }

    fn log_of(&self, guard: &ProgramGuard<'_>) -> Result<String, CudaError> {
        let mut bytes = 0_usize;
        // SAFETY: a live program and a valid pointer.
        self.check(unsafe { (self.functions.log_size)(guard.program, &raw mut bytes) }, "nvrtcGetProgramLogSize")?;
        let mut log = vec![0_u8; bytes.max(1)];
        // SAFETY: room for as many bytes as the function before said there are, the closing zero included.
        self.check(unsafe { (self.functions.log)(guard.program, log.as_mut_ptr().cast()) }, "nvrtcGetProgramLog")?;
        let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
        Ok(String::from_utf8_lossy(&log[..end]).into_owned())
    }
}

/// Destroys a program on every way out.
struct ProgramGuard<'a> {
    nvrtc: &'a Nvrtc,
    program: NvrtcProgram,
}

impl Drop for ProgramGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: made by nvrtcCreateProgram, destroyed only here. A failure would leak memory and no more.
        unsafe { (self.nvrtc.functions.destroy_program)(&raw mut self.program) };
    }
}

/// What tells the compiler in a file from every other, without loading it: its length and that of its helpers, whose names say the
/// version, which its own need not.
fn identity_of(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let helpers = path.parent().map_or_else(Vec::new, |folder| sorted_entries(folder, "libnvrtc-builtins.so"));
    let said = [path].into_iter().chain(helpers).map(|file| {
        let bytes = std::fs::metadata(&file).map_or(0, |metadata| metadata.len());
        format!("{} {bytes}", file.file_name().unwrap_or_default().to_string_lossy())
    });
    said.collect::<Vec<_>>().join(", ")
}

/// The machine's NVRTC, which is loaded when something has to be compiled: that takes a tenth of a second, and kernels that are
/// kept do without.
#[derive(Debug)]
pub(crate) struct LazyNvrtc {
    /// Of the file that is tried first.
    identity: String,
    loaded: OnceLock<Arc<Nvrtc>>,
}

impl LazyNvrtc {
    /// As [`Nvrtc::shared`], but that a file which is where it is looked for first is not loaded yet.
    ///
    /// # Errors
    /// As [`Nvrtc::shared`], where there is no such file.
    pub fn find() -> Result<Self, CudaError> {
        match SearchPath::from_environment().first_nvrtc() {
            Some(path) => Ok(Self { identity: identity_of(&path), loaded: OnceLock::new() }),
            None => Ok(Self::from(Nvrtc::shared()?)),
        }
    }

    /// What tells it from every other, as far as that is known: another one takes its place where it does not load.
    pub fn identity(&self) -> &str {
        self.loaded.get().map_or(&self.identity, |nvrtc| nvrtc.identity())
    }

    /// Loads it, if this is the first call.
    ///
    /// # Errors
    /// As [`Nvrtc::shared`].
    pub fn load(&self) -> Result<&Nvrtc, CudaError> {
        if let Some(nvrtc) = self.loaded.get() {
            return Ok(nvrtc);
        }
        // Two threads that come here at one time both have the process's one.
        let shared = Nvrtc::shared()?;
        Ok(self.loaded.get_or_init(|| shared))
    }

    /// One that is not looked for.
    #[cfg(test)]
    pub fn named(identity: &str) -> Self {
        Self { identity: identity.to_owned(), loaded: OnceLock::new() }
    }

    /// Whether it is loaded.
    #[cfg(test)]
    pub fn is_loaded(&self) -> bool {
        self.loaded.get().is_some()
    }
}

impl From<Arc<Nvrtc>> for LazyNvrtc {
    fn from(nvrtc: Arc<Nvrtc>) -> Self {
        Self { identity: nvrtc.identity().to_owned(), loaded: OnceLock::from(nvrtc) }
    }
}

/// The file behind a library that the linker found by name; the name itself where that cannot be told.
fn loaded_path(asked: &Path) -> PathBuf {
    if asked.components().count() > 1 {
        return asked.canonicalize().unwrap_or_else(|_| asked.to_owned());
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines()
        .filter_map(|line| line.split_once('/').map(|(_, path)| PathBuf::from(format!("/{path}"))))
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libnvrtc.so")))
        .unwrap_or_else(|| asked.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_found_where_nothing_is_and_the_error_names_every_place() {
        let empty = tempfile::tempdir().expect("a temporary folder");
        let search = SearchPath {
            lookback_cuda_home: Some(empty.path().join("one")),
            cuda_home: Some(empty.path().join("two")),
            virtual_env: Some(empty.path().join("three")),
            ..SearchPath::default()
        };
        for error in [search.find_nvrtc().err(), search.find_nvcc().err()] {
            let text = error.expect("there is nothing to find").to_string();
            for place in ["LOOKBACK_CUDA_HOME", "one", "CUDA_HOME", "two", "VIRTUAL_ENV", "three", "install-cuda.sh"] {
                assert!(text.contains(place), "'{place}' is missing in: {text}");
            }
        }
    }

    #[test]
    fn a_file_that_is_no_library_is_reported_as_unusable() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("lib64")).expect("a folder");
        std::fs::write(folder.path().join("lib64/libnvrtc.so"), "no library").expect("a file");
        let search = SearchPath { cuda_home: Some(folder.path().to_owned()), ..SearchPath::default() };
        assert!(matches!(search.find_nvrtc(), Err(CudaError::CompilerUnusable { .. })));
    }

    #[test]
    fn nvcc_is_found_by_variable_by_prefix_on_path_and_in_wheels() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for below in ["toolkit/bin", "venv/lib/python3.11/site-packages/nvidia/cu13/bin", "target/nvidia/cu13/bin"] {
            std::fs::create_dir_all(folder.path().join(below)).expect("a folder");
            std::fs::write(folder.path().join(below).join("nvcc"), "").expect("a file");
        }
        let toolkit = folder.path().join("toolkit");
        let expected = toolkit.join("bin/nvcc");
        let found = |search: SearchPath| search.find_nvcc().expect("nvcc is there");
        assert_eq!(found(SearchPath { nvcc: Some(expected.clone()), ..SearchPath::default() }), expected);
        assert_eq!(found(SearchPath { cuda_home: Some(toolkit.clone()), ..SearchPath::default() }), expected);
        let on_path = SearchPath { path: Some(toolkit.join("bin").into_os_string()), ..SearchPath::default() };
        assert!(found(on_path).ends_with("toolkit/bin/nvcc"));
        let wheels = SearchPath { virtual_env: Some(folder.path().join("venv")), ..SearchPath::default() };
        assert!(found(wheels).ends_with("nvidia/cu13/bin/nvcc"));
        let installed = SearchPath { installed: Some(folder.path().join("target")), ..SearchPath::default() };
        assert!(found(installed).ends_with("target/nvidia/cu13/bin/nvcc"));
    }

    #[test]
    fn ncu_is_found_on_path_by_prefix_and_the_newest_that_is_installed_by_itself() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for below in ["path", "toolkit/bin", "nsight/2024.3.2", "nsight/2025.1.0"] {
            std::fs::create_dir_all(folder.path().join(below)).expect("a folder");
            std::fs::write(folder.path().join(below).join("ncu"), "").expect("a file");
        }
        let mut search = SearchPath {
            path: Some(folder.path().join("path").into_os_string()),
            cuda_home: Some(folder.path().join("toolkit")),
            nsight_compute: Some(folder.path().join("nsight")),
            ..SearchPath::default()
        };
        let ends_with = |search: &SearchPath, end: &str| search.find_ncu().expect("ncu is there").ends_with(end);
        assert!(ends_with(&search, "path/ncu"));
        search.path = None;
        assert!(ends_with(&search, "toolkit/bin/ncu"));
        search.cuda_home = None;
        assert!(ends_with(&search, "nsight/2025.1.0/ncu"));
        search.nsight_compute = None;
        assert_eq!(search.find_ncu(), None);
    }
}
