//! A memory back end that lets a launch touch its arrays and nothing else. Everything goes to native
//! memory, once it is known to lie inside an array that the launch was given.

use crate::cpu::backend::out_of_bounds;
use crate::cpu::{Access, AccessKind, MemoryBackend, Synchronization};

/// An array that a launch may touch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Array {
    pub name: &'static str,
    pub address: usize,
    pub bytes: usize,
    pub writable: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct BoundsCheck {
    arrays: Vec<Array>,
    /// Shared memory of the resident blocks: it comes and goes with them.
    shared: Vec<(u64, usize, usize)>,
}

impl BoundsCheck {
    pub fn new(arrays: Vec<Array>) -> Self {
        Self { arrays, shared: Vec::new() }
    }

    fn check(&self, access: &Access) -> Result<(), String> {
        let end = access.address.wrapping_add(access.bytes as usize);
        let within = |address: usize, bytes: usize| address <= access.address && end <= address + bytes;
        let allowed = match access.kind {
            AccessKind::SharedLoad | AccessKind::SharedStore | AccessKind::SharedAdd => {
                self.shared.iter().any(|&(block, address, bytes)| block == access.block && within(address, bytes))
            }
            AccessKind::ClusterStore => self.shared.iter().any(|&(_, address, bytes)| within(address, bytes)),
            _ => self
                .arrays
                .iter()
                .any(|array| within(array.address, array.bytes) && (array.writable || !access.kind.is_store())),
        };
        if allowed {
            return Ok(());
        }
        Err(out_of_bounds(access, self.arrays.iter().map(|array| (array.name, array.address, array.bytes))))
    }
}

impl MemoryBackend for BoundsCheck {
    fn load(&mut self, access: &Access, value: &mut [u8]) -> Result<(), String> {
        self.check(access)?;
        // SAFETY: the access lies inside an array of the launch; launches run on one OS thread, and no
        // Rust reference into the arrays is alive meanwhile.
        unsafe { std::ptr::copy_nonoverlapping(access.address as *const u8, value.as_mut_ptr(), value.len()) };
        Ok(())
    }

    fn store(&mut self, access: &Access, value: &[u8]) -> Result<(), String> {
        self.check(access)?;
        // SAFETY: as in `load`; the array is writable.
        unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), access.address as *mut u8, value.len()) };
        Ok(())
    }

    fn fetch_add(&mut self, access: &Access, value: u32) -> Result<u32, String> {
        self.check(access)?;
        let word = access.address as *mut u32;
        // SAFETY: as in `store`; counters are 4-byte words of the control block or of shared memory.
        unsafe {
            let before = word.read();
            word.write(before.wrapping_add(value));
            Ok(before)
        }
    }

    fn synchronize(&mut self, event: Synchronization) -> Result<(), String> {
        match event {
            Synchronization::SharedStorage { block, address, bytes } => {
                self.shared.push((block, address, bytes as usize));
            }
            Synchronization::BlockEnd { block } => self.shared.retain(|&(owner, ..)| owner != block),
            _ => {}
        }
        Ok(())
    }
}
