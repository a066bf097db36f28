//! What kernels call where a memory back end answers their accesses.

use super::context::{BackendFunctions, Thread};
use super::faults::fail_in_backend;
use crate::cpu::backend::{Access, AccessKind, MemoryBackend, Scope};
use crate::cpu::error::RawSite;
use std::ffi::{c_char, c_void};

pub(super) static BACKEND_FUNCTIONS: BackendFunctions = BackendFunctions { load, store, fetch_add, fence };

/// `LOOKBACK_ACCESS_BLOCK_SCOPE` and `LOOKBACK_ACCESS_VECTOR`, added to the number of a kind.
const BLOCK_SCOPE: u32 = 0x100;
const VECTOR: u32 = 0x200;

/// Calls the back end for the running thread.
///
/// # Safety
/// `thread` is the context of the running coroutine of a launch that has a back end.
unsafe fn call<R>(
    thread: *const Thread,
    access: u32,
    address: *const c_void,
    bytes: u32,
    site: RawSite,
    action: impl FnOnce(&mut dyn MemoryBackend, &Access) -> Result<R, String>,
) -> R {
    // SAFETY: the caller's promise; contexts outlive their coroutines.
    let thread = unsafe { &*thread };
    let access = Access {
        scope: if access & BLOCK_SCOPE != 0 { Scope::Block } else { Scope::Gpu },
        is_vector: access & VECTOR != 0,
        ..thread.access(AccessKind::from_number(access & 0xff), address.addr(), bytes, site)
    };
    let answer = thread.launch().call_backend(|backend| action(backend, &access));
    let answer = answer.and_then(|answer| answer.ok_or_else(|| "no back end is set".to_owned()));
    answer.unwrap_or_else(|message| fail_in_backend(thread, message, site))
}

unsafe extern "C" fn load(
    thread: *const Thread,
    access: u32,
    address: *const c_void,
    value: *mut c_void,
    bytes: u32,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: `memory.h` passes its current thread, and `value` as `bytes` bytes of its own; it may be
    // uninitialised, so it is cleared before it becomes a slice.
    unsafe {
        value.cast::<u8>().write_bytes(0, bytes as usize);
        let value = std::slice::from_raw_parts_mut(value.cast::<u8>(), bytes as usize);
        call(thread, access, address, bytes, RawSite { file, line }, |backend, access| backend.load(access, value));
    }
}

unsafe extern "C" fn store(
    thread: *const Thread,
    access: u32,
    address: *const c_void,
    value: *const c_void,
    bytes: u32,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: as in `load`; the value was written by the kernel.
    unsafe {
        let value = std::slice::from_raw_parts(value.cast::<u8>(), bytes as usize);
        call(thread, access, address, bytes, RawSite { file, line }, |backend, access| backend.store(access, value));
    }
}

unsafe extern "C" fn fetch_add(
    thread: *const Thread,
    access: u32,
    address: *const c_void,
    value: u32,
    file: *const c_char,
    line: u32,
) -> u32 {
    // SAFETY: as in `load`.
    unsafe {
        call(thread, access, address, 4, RawSite { file, line }, |backend, access| backend.fetch_add(access, value))
    }
}

unsafe extern "C" fn fence(thread: *const Thread, access: u32, file: *const c_char, line: u32) {
    // SAFETY: as in `load`.
    unsafe {
        call(thread, access, std::ptr::null(), 0, RawSite { file, line }, |backend, access| backend.fence(access));
    }
}
