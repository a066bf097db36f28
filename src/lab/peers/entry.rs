//! The tables of `cuda/peers/`, as `cuda/peers/peers.h` lays them out.

use std::ffi::{c_char, c_int, c_void};

/// `lookback_peer_size`: how large a run is.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) n: u64,
    pub(super) segments: u64,
}

/// `lookback_peer_entry`: one peer for one problem, element types, operator and mode.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: *const c_char,
    pub(super) version: u32,
    pub(super) kind: u32,
    pub(super) problem: *const c_char,
    pub(super) input: *const c_char,
    pub(super) element: *const c_char,
    pub(super) operation: *const c_char,
    pub(super) mode: u32,
    pub(super) capturable: u32,
    pub(super) largest_n: u64,
    pub(super) temporary_bytes: unsafe extern "C" fn(size: *const Size, bytes: *mut usize) -> c_int,
    pub(super) launch: unsafe extern "C" fn(
        temporary: *mut c_void,
        temporary_bytes: usize,
        inputs: *const *const c_void,
        output: *mut c_void,
        size: *const Size,
        stream: *mut c_void,
    ) -> c_int,
}

// `peers.h` asserts the same.
const _: () = assert!(
    size_of::<Entry>() == 80
        && std::mem::offset_of!(Entry, largest_n) == 56
        && std::mem::offset_of!(Entry, launch) == 72
        && size_of::<Size>() == 16
        && std::mem::offset_of!(Size, segments) == 8
);

// SAFETY: an entry is never written, and its names point to string literals.
unsafe impl Sync for Entry {}

// `TABLES`: the functions that hand out the tables, one an object file.
#[cfg(feature = "peers")]
include!(concat!(env!("OUT_DIR"), "/peer_tables.rs"));

/// Every entry, in the order of the build.
#[cfg(feature = "peers")]
pub(super) fn entries() -> Vec<&'static Entry> {
    let mut entries = Vec::new();
    for table in TABLES {
        let mut first = std::ptr::null();
        // SAFETY: a valid place for the address; the function does nothing but fill it in.
        let count = unsafe { table(&raw mut first) };
        // SAFETY: the table is a static array of `count` entries, which nothing writes to once it is handed out.
        entries.extend(unsafe { std::slice::from_raw_parts(first, count) });
    }
    entries
}

/// None: the build left the peers out.
#[cfg(not(feature = "peers"))]
pub(super) fn entries() -> Vec<&'static Entry> {
    Vec::new()
}

/// Name and sentence of an error of the CUDA runtime.
#[cfg(feature = "peers")]
pub(super) fn describe_error(code: c_int) -> (String, String) {
    unsafe extern "C" {
        fn lookback_peer_error(error: c_int, name: *mut *const c_char, text: *mut *const c_char);
    }
    let (mut name, mut text) = (std::ptr::null(), std::ptr::null());
    // SAFETY: two valid places, which the call fills with strings of the runtime's own.
    unsafe { lookback_peer_error(code, &raw mut name, &raw mut text) };
    let owned = |string: *const c_char| {
        if string.is_null() {
            return String::from("no description");
        }
        // SAFETY: the runtime hands out static strings, zero at the end.
        unsafe { std::ffi::CStr::from_ptr(string) }.to_string_lossy().into_owned()
    };
    (owned(name), owned(text))
}

/// Not reached: without entries nothing fails.
#[cfg(all(feature = "cuda", not(feature = "peers")))]
pub(super) fn describe_error(code: c_int) -> (String, String) {
    (format!("error {code}"), String::from("no description"))
}
