//! The memory of a case as the executor sees it: what answers its accesses, and who looks on.

use super::case::Memory;
use crate::abi;
use crate::cpu::{Access, AsyncStore, Copy, MemoryBackend, Synchronization, TileStep, WeakMemory, WeakSettings};
use crate::lab::bounds::{Array, BoundsCheck};
use crate::strategy::Descriptor;
use crate::strategy::plan::Step;

/// Where a workspace lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    /// Address of the control block.
    pub control: usize,
    /// Address of the first descriptor.
    pub descriptors: usize,
    /// Bytes of all of them.
    pub descriptor_bytes: usize,
    /// Descriptors.
    pub capacity: u64,
    /// How they are laid out.
    pub layout: Descriptor,
}

impl Places {
    /// What of it is accessed in single words, by address.
    pub fn protocol(&self) -> [usize; 2] {
        [self.control, self.descriptors]
    }

    /// What a launch may touch there.
    pub fn regions(&self) -> [Array; 2] {
        let bytes = size_of::<abi::lookback_control>();
        [
            Array { name: "the control block", address: self.control, bytes, writable: true },
            Array { name: "the descriptors", address: self.descriptors, bytes: self.descriptor_bytes, writable: true },
        ]
    }
}

/// Something that is told of accesses as they happen.
pub(super) trait Observer {
    /// An access by a thread, with the value that it moved; a fetch-and-add with the value before.
    fn observe(&mut self, access: &Access, value: &[u8]);
    /// So many bytes have landed in shared memory of a block, by a copy or a store that went on beside its thread.
    fn landed(&mut self, block: u64, access: &Access);
    /// A warp has come to a step with a tile.
    fn stepped(&mut self, step: &TileStep);
    /// Threads have met, or shared memory is there.
    fn synchronized(&mut self, event: &Synchronization);
    /// A launch of a kernel begins, whose blocks are numbered from here on; one that is taken together with others before
    /// any of them does anything.
    fn begins(&mut self, step: &Step, workspace: &Places, first_block: u64);
}

/// What happens in the middle of a launch.
pub(super) type Interruption<'a> = (u64, &'a mut dyn FnMut() -> Result<(), String>);

/// The memory of a case, as the executor sees it: the model, and whoever looks on.
pub(super) struct Watched<'a, 'observer, 'interruption> {
    pub inner: &'a mut dyn MemoryBackend,
    pub observer: Option<&'a mut (dyn Observer + 'observer)>,
    /// At the k-th access of the protocol something else happens first.
    pub at_access: Option<Interruption<'interruption>>,
    pub accesses: u64,
}

impl Watched<'_, '_, '_> {
    fn before(&mut self, access: &Access) -> Result<(), String> {
        if !access.kind.is_protocol() {
            return Ok(());
        }
        if let Some((at, action)) = &mut self.at_access
            && *at == self.accesses
        {
            action()?;
        }
        self.accesses += 1;
        Ok(())
    }

    fn after(&mut self, access: &Access, value: &[u8]) {
        if let Some(observer) = self.observer.as_mut() {
            observer.observe(access, value);
        }
    }

    fn landed(&mut self, block: u64, access: &Access) {
        if let Some(observer) = self.observer.as_mut() {
            observer.landed(block, access);
        }
    }
}

impl MemoryBackend for Watched<'_, '_, '_> {
    fn launch_begins(&mut self, grid_blocks: u64, block_threads: u32) -> Result<(), String> {
        self.inner.launch_begins(grid_blocks, block_threads)
    }

    fn launches_begin(&mut self, grids: &[u64], streams: usize, block_threads: u32) -> Result<(), String> {
        self.inner.launches_begin(grids, streams, block_threads)
    }

    fn load(&mut self, access: &Access, value: &mut [u8]) -> Result<(), String> {
        self.before(access)?;
        self.inner.load(access, value)?;
        self.after(access, value);
        Ok(())
    }

    fn store(&mut self, access: &Access, value: &[u8]) -> Result<(), String> {
        self.before(access)?;
        self.inner.store(access, value)?;
        self.after(access, value);
        Ok(())
    }

    fn fetch_add(&mut self, access: &Access, value: u32) -> Result<u32, String> {
        self.before(access)?;
        let before = self.inner.fetch_add(access, value)?;
        self.after(access, &before.to_ne_bytes());
        Ok(before)
    }

    fn fence(&mut self, access: &Access) -> Result<(), String> {
        self.inner.fence(access)?;
        if let Some(observer) = self.observer.as_mut() {
            observer.observe(access, &[]);
        }
        Ok(())
    }

    fn copy_begins(&mut self, copy: &Copy) -> Result<(), String> {
        self.inner.copy_begins(copy)
    }

    fn copy_lands(&mut self, copy: &Copy) -> Result<(), String> {
        self.inner.copy_lands(copy)?;
        self.landed(copy.target.block, &copy.target);
        Ok(())
    }

    fn store_begins(&mut self, store: &AsyncStore) -> Result<(), String> {
        self.inner.store_begins(store)
    }

    fn store_lands(&mut self, store: &AsyncStore) -> Result<(), String> {
        self.inner.store_lands(store)?;
        self.landed(store.block, &store.access);
        Ok(())
    }

    fn tile_step(&mut self, step: &TileStep) {
        if let Some(observer) = self.observer.as_mut() {
            observer.stepped(step);
        }
    }

    fn synchronize(&mut self, event: Synchronization) -> Result<(), String> {
        self.inner.synchronize(event)?;
        if let Some(observer) = self.observer.as_mut() {
            observer.synchronized(&event);
        }
        Ok(())
    }
}

/// What answers the accesses of a launch.
pub(super) enum Model {
    Strong(BoundsCheck),
    Weak(Box<WeakMemory>),
}

impl Model {
    /// That of a case, with these arrays; `protocol` are those of them, by address, in which single words are accessed.
    pub fn new(memory: Memory, seed: u64, arrays: Vec<Array>, protocol: &[usize], element_bytes: usize) -> Self {
        match memory {
            Memory::Strong => Self::Strong(BoundsCheck::new(arrays)),
            Memory::Weak => {
                let mut memory = WeakMemory::new(seed, WeakSettings::default());
                for Array { name, address, bytes, writable } in arrays {
                    let granule = if protocol.contains(&address) { 4 } else { element_bytes };
                    memory.add_array(name, address, bytes, granule as u32, writable);
                }
                Self::Weak(Box::new(memory))
            }
        }
    }

    /// The launches that it served are over, or were ended.
    pub fn finish_launch(&mut self) {
        if let Self::Weak(memory) = self {
            memory.finish_launch();
        }
    }

    pub fn backend(&mut self) -> &mut dyn MemoryBackend {
        match self {
            Self::Strong(memory) => memory,
            Self::Weak(memory) => memory.as_mut(),
        }
    }
}
