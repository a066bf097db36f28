//! Shared memory of the blocks, kept from one block in a slot to the next.

use std::cell::{Cell, RefCell, UnsafeCell};

/// Room for shared memory with the alignment that any declaration may ask for.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
struct SharedChunk(#[allow(dead_code)] [u8; 128]);

/// Storage that a block has declared.
#[derive(Debug, Clone, Copy)]
struct SharedStorage {
    key: usize,
    address: *mut u8,
    bytes: usize,
}

/// Shared memory of the block in one slot: what it has declared, in one piece of heap memory.
#[derive(Default)]
pub(super) struct SharedMemory {
    chunks: UnsafeCell<Vec<SharedChunk>>,
    used: Cell<usize>,
    table: RefCell<Vec<SharedStorage>>,
}

impl SharedMemory {
    /// For the next block in the slot.
    pub fn clear(&self) {
        self.used.set(0);
        self.table.borrow_mut().clear();
    }

    /// The storage declared under `key`, if it has been asked for.
    pub fn find(&self, key: usize) -> Option<*mut u8> {
        self.table.borrow().iter().find(|known| known.key == key).map(|known| known.address)
    }

    /// The storage that holds `bytes` bytes at `address`, by its key, and where in it they are.
    pub fn find_place(&self, address: usize, bytes: usize) -> Option<(usize, usize)> {
        let table = self.table.borrow();
        let holds = |known: &&SharedStorage| {
            known.address.addr() <= address && address + bytes <= known.address.addr() + known.bytes
        };
        table.iter().find(holds).map(|known| (known.key, address - known.address.addr()))
    }

    /// Makes storage for `key`, filled with `poison`; returns it with the bytes declared so far.
    ///
    /// # Errors
    /// With the bytes needed, when they exceed `limit_bytes`.
    pub fn declare(
        &self,
        key: usize,
        bytes: usize,
        alignment: usize,
        limit_bytes: usize,
        poison: u8,
    ) -> Result<(*mut u8, usize), usize> {
        let start = self.used.get().next_multiple_of(alignment);
        let end = start + bytes;
        if end > limit_bytes {
            return Err(end);
        }
        // SAFETY: no reference into the vector exists: kernels hold pointers into its heap memory, which
        // moves only here, and it grows only while no storage has been handed out.
        let chunks = unsafe { &mut *self.chunks.get() };
        if chunks.is_empty() {
            chunks.resize(limit_bytes.div_ceil(size_of::<SharedChunk>()), SharedChunk([poison; 128]));
        }
        // SAFETY: `end` is within the limit, and the vector holds as many bytes.
        let address = unsafe {
            let address = chunks.as_mut_ptr().cast::<u8>().add(start);
            address.write_bytes(poison, bytes);
            address
        };
        self.used.set(end);
        self.table.borrow_mut().push(SharedStorage { key, address, bytes });
        Ok((address, end))
    }
}
