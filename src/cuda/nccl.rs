//! NCCL, which brings the totals of ranks together on their GPUs' streams: found when it is asked for, never linked.
//!
//! cudarc has its types and looks for `libnccl.so` alone, which a development package brings, and panics without it. A program
//! that only runs has `libnccl.so.2`, of the system or of a Python wheel, so that the functions that are needed are looked up
//! here, as the driver and NVRTC are in [`super::toolkit`]. The library is looked for
//!
//! 1. where `LOOKBACK_NCCL` says, a file,
//! 2. on the library path of the dynamic linker, as `libnccl.so.2` and as `libnccl.so`,
//! 3. among the wheels of the active virtual environment (`VIRTUAL_ENV`), `nvidia-nccl-cu13` and `nvidia-nccl-cu12`.

use super::error::CudaError;
use cudarc::driver::CudaStream;
use cudarc::nccl::sys::{cudaStream_t, ncclComm_t, ncclUniqueId};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// What every function returns: 0 where all went well. No enum, because other versions have other numbers.
type Status = c_uint;
const SUCCESS: Status = 0;
/// `ncclInProgress`
const IN_PROGRESS: Status = 7;
/// `ncclUint8`
const BYTE: c_uint = 1;

/// The functions, by the names in `nccl.h`, whose types are the same in all versions from 2.4 on.
struct Functions {
    get_version: unsafe extern "C" fn(*mut c_int) -> Status,
    get_unique_id: unsafe extern "C" fn(*mut ncclUniqueId) -> Status,
    init_rank: unsafe extern "C" fn(*mut ncclComm_t, c_int, ncclUniqueId, c_int) -> Status,
    all_gather: unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_uint, ncclComm_t, cudaStream_t) -> Status,
    get_async_error: unsafe extern "C" fn(ncclComm_t, *mut Status) -> Status,
    abort: unsafe extern "C" fn(ncclComm_t) -> Status,
    error_string: unsafe extern "C" fn(Status) -> *const c_char,
    last_error: unsafe extern "C" fn(ncclComm_t) -> *const c_char,
    /// They are in it.
    _library: Library,
}

/// NCCL, loaded for the rest of the process.
#[derive(Clone, Copy)]
pub(super) struct Nccl(&'static Functions);

/// What names a communicator that is to be made: bytes that rank 0 gives to all.
pub(super) const ID_BYTES: usize = size_of::<ncclUniqueId>();

impl Nccl {
    /// # Errors
    /// [`CudaError::NcclMissing`] with every place that was looked at.
    pub(super) fn load() -> Result<Self, CudaError> {
        static LOADED: OnceLock<Result<Functions, String>> = OnceLock::new();
        match LOADED.get_or_init(|| find(&places())) {
            Ok(functions) => Ok(Self(functions)),
            Err(searched) => Err(CudaError::NcclMissing { searched: searched.clone() }),
        }
    }

    /// As people write it, 2.28.9.
    pub(super) fn version(self) -> Result<String, CudaError> {
        let mut code = 0;
        // SAFETY: a valid pointer.
        self.check("asking NCCL for its version", unsafe { (self.0.get_version)(&raw mut code) })?;
        Ok(format!("{}.{}.{}", code / 10_000, code / 100 % 100, code % 100))
    }

    /// What rank 0 gives to all.
    pub(super) fn unique_id(self) -> Result<[u8; ID_BYTES], CudaError> {
        let mut id = ncclUniqueId { internal: [0; ID_BYTES] };
        // SAFETY: a valid pointer.
        self.check("asking NCCL for a unique id", unsafe { (self.0.get_unique_id)(&raw mut id) })?;
        Ok(id.internal.map(|byte| byte as u8))
    }

    /// Makes this rank's communicator on the device whose context is current. Waits for all ranks, for ever if one does not come.
    pub(super) fn communicator(self, id: [u8; ID_BYTES], rank: usize, size: usize) -> Result<Communicator, CudaError> {
        let id = ncclUniqueId { internal: id.map(|byte| byte as c_char) };
        let mut handle = std::ptr::null_mut();
        // SAFETY: a valid pointer, and the id that all ranks have; a group's ranks fit into an int (`ranks::Group`).
        let made = unsafe { (self.0.init_rank)(&raw mut handle, size as c_int, id, rank as c_int) };
        self.check("making a communicator", made)?;
        Ok(Communicator(Arc::new(Handle { nccl: self, handle, is_given_up: AtomicBool::new(false) })))
    }

    fn check(self, action: &str, status: Status) -> Result<(), CudaError> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: both return strings that end and stay; the second one takes no communicator, too.
        let [kind, detail] = unsafe {
            [(self.0.error_string)(status), (self.0.last_error)(std::ptr::null_mut())].map(|text| {
                if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().trim().to_owned() }
            })
        };
        Err(CudaError::Nccl { action: action.to_owned(), message: kind, detail })
    }
}

/// A rank's communicator, which is given up when it is dropped: kernels that wait in it end.
pub(super) struct Communicator(Arc<Handle>);

/// What gives a communicator up from elsewhere.
pub(super) struct Handle {
    nccl: Nccl,
    handle: ncclComm_t,
    is_given_up: AtomicBool,
}

// SAFETY: NCCL's calls on a communicator may come from any thread, one at a time, which `Communicator` takes care of by `&mut`; but
// for `ncclCommAbort`, which may come at any time and is called once.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    /// Ends kernels that wait in it, and calls that are under way.
    pub(super) fn give_up(&self) {
        if !self.is_given_up.swap(true, Ordering::Relaxed) {
            // SAFETY: made once, and given up here alone, once. Not destroyed, which waits for others.
            let _ = unsafe { (self.nccl.0.abort)(self.handle) };
        }
    }
}

impl Handle {
    /// Refuses calls on what was given up.
    fn check_held(&self) -> Result<(), CudaError> {
        if !self.is_given_up.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (action, message) =
            ("exchanging the totals of ranks".to_owned(), "the communicator was given up".to_owned());
        Err(CudaError::Nccl { action, message, detail: String::new() })
    }
}

impl Communicator {
    /// What gives it up from elsewhere.
    pub(super) fn handle(&self) -> Arc<Handle> {
        Arc::clone(&self.0)
    }

    /// Puts an exchange onto the stream: each rank's `bytes` bytes from `own` go to all ranks' `into`, in their order.
    ///
    /// # Safety
    /// `own` has so many bytes, `into` as many for each rank; both are memory of the communicator's device, the stream is one of
    /// its, and its context is current. They live until the stream has done the work.
    pub(super) unsafe fn all_gather(
        &mut self,
        own: u64,
        into: u64,
        bytes: usize,
        stream: &CudaStream,
    ) -> Result<(), CudaError> {
        self.0.check_held()?;
        // SAFETY: what the caller promises; the two libraries' handles of a stream are one.
        let status = unsafe {
            (self.0.nccl.0.all_gather)(
                own as *const c_void,
                into as *mut c_void,
                bytes,
                BYTE,
                self.0.handle,
                stream.cu_stream().cast(),
            )
        };
        self.0.nccl.check("exchanging the totals of ranks", status)
    }

    /// What went wrong since, if anything did.
    pub(super) fn check(&mut self) -> Result<(), CudaError> {
        self.0.check_held()?;
        let mut found = SUCCESS;
        // SAFETY: the communicator is there, and the pointer is valid.
        let asked = unsafe { (self.0.nccl.0.get_async_error)(self.0.handle, &raw mut found) };
        self.0.nccl.check("asking a communicator for errors", asked)?;
        if found == IN_PROGRESS { Ok(()) } else { self.0.nccl.check("exchanging the totals of ranks", found) }
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

/// Where the library may be, in order.
fn places() -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = std::env::var_os("LOOKBACK_NCCL").into_iter().map(PathBuf::from).collect();
    places.extend(["libnccl.so.2", "libnccl.so"].map(PathBuf::from));
    if let Some(environment) = std::env::var_os("VIRTUAL_ENV") {
        let interpreters = std::fs::read_dir(Path::new(&environment).join("lib")).into_iter().flatten().flatten();
        let wheels = interpreters.map(|folder| folder.path().join("site-packages/nvidia/nccl/lib/libnccl.so.2"));
        places.extend(wheels);
    }
    places
}

/// The first that has all functions; or what was looked at.
fn find(places: &[PathBuf]) -> Result<Functions, String> {
    let mut searched = Vec::new();
    for place in places {
        // SAFETY: NCCL's initialisers are what every program runs that uses it.
        match unsafe { Library::new(place) }.and_then(functions) {
            Ok(functions) => return Ok(functions),
            // The linker's own words are long, and say no more where nothing is.
            Err(libloading::Error::DlOpen { .. }) => searched.push(place.display().to_string()),
            Err(_) => searched.push(format!("{} (which lacks a function of NCCL)", place.display())),
        }
    }
    Err(searched.join(", "))
}

fn functions(library: Library) -> Result<Functions, libloading::Error> {
    // SAFETY: the types are those of `nccl.h`.
    unsafe {
        Ok(Functions {
            get_version: *library.get(b"ncclGetVersion\0")?,
            get_unique_id: *library.get(b"ncclGetUniqueId\0")?,
            init_rank: *library.get(b"ncclCommInitRank\0")?,
            all_gather: *library.get(b"ncclAllGather\0")?,
            get_async_error: *library.get(b"ncclCommGetAsyncError\0")?,
            abort: *library.get(b"ncclCommAbort\0")?,
            error_string: *library.get(b"ncclGetErrorString\0")?,
            last_error: *library.get(b"ncclGetLastError\0")?,
            _library: library,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_nccl_is_named_with_the_reason() {
        let nowhere = [PathBuf::from("/nowhere/libnccl.so.2"), PathBuf::from("libc.so.6")];
        let searched = find(&nowhere).err().expect("neither is NCCL");
        assert_eq!(searched, "/nowhere/libnccl.so.2, libc.so.6 (which lacks a function of NCCL)");
    }
}
