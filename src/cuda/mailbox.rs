//! What ranks of one host have of each other's memory: each has a mailbox that the others write into, with the descriptors of all
//! ranks' tiles behind it (`cuda/scan/dealt.cuh`).
//!
//! Ranks that are threads of one process know each other's addresses, once their contexts may reach each other. Ranks that are
//! processes of their own open each other's memory by what the driver calls interprocess handles.

use super::error::{Context as _, CudaError};
use super::memory::{Buffer, DeviceMemory};
use crate::abi;
use crate::ranks::{Group, RankError};
use crate::strategy::launch::CONTROL_BYTES;
use cudarc::driver::sys::{self, CUresult};
use std::hash::{BuildHasher, RandomState};
use std::mem::offset_of;
use std::sync::{Arc, LazyLock};

/// Bytes from the control block, in front of the mailbox, to the descriptors behind it.
const DESCRIPTORS: u64 = CONTROL_BYTES + size_of::<abi::lookback_mailbox>() as u64;

/// A rank's own, and where those of all ranks are.
pub(super) struct Mailbox {
    own: Buffer,
    /// The addresses of all, by rank.
    table: Buffer,
    /// Memory of other processes that is open here.
    opened: Vec<sys::CUdeviceptr>,
    capacity: u64,
}

/// What a rank tells the others.
#[derive(Debug, Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C)]
struct Card {
    /// Of the host, as long as it runs; 0 where it does not say.
    host: u64,
    /// Of the process.
    process: u64,
    context: u64,
    address: u64,
    /// What all ranks have alike.
    shape: Shape,
    /// The GPU's place in the host.
    bus: [u8; 16],
    handle: [[u8; 32]; 2],
}

/// What is shared: all ranks have to be of one mind about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C)]
pub(super) struct Shape {
    /// Descriptors, in two halves.
    pub capacity: u64,
    /// Bytes of each.
    pub descriptor_bytes: u64,
    /// Elements of all ranks, of a chunk and of a tile.
    pub elements: [u64; 3],
}

impl Mailbox {
    /// One for so many descriptors, in two halves, and those of the other ranks. All ranks of the group come to this.
    ///
    /// # Errors
    /// When a GPU does not reach another one's memory, ranks differ about what they share, memory is short, or a rank is lost.
    pub(super) fn exchange(group: &Group, memory: &Arc<DeviceMemory>, shape: Shape) -> Result<Self, CudaError> {
        let Shape { capacity, descriptor_bytes, .. } = shape;
        let own =
            memory.allocate_zeroed(DESCRIPTORS + capacity * descriptor_bytes, "descriptors of all ranks' tiles")?;
        let card = Card {
            host: *HOST,
            process: *PROCESS,
            context: memory.context().cu_ctx().expose_provenance() as u64,
            address: own.address(),
            shape,
            bus: bus_of(memory.context().cu_device()),
            handle: handle_of(&own),
        };
        let cards = group.all_gather(bytemuck::bytes_of(&card))?;
        let cards = cards.chunks_exact(size_of::<Card>()).map(bytemuck::pod_read_unaligned::<Card>);
        let mut mailbox =
            Self { own, table: memory.allocate(8 * group.size() as u64, "addresses")?, opened: Vec::new(), capacity };
        let mut addresses = Vec::new();
        for (rank, card) in cards.enumerate() {
            if card.shape != shape {
                return Err(RankError::OtherDeal { rank, this: group.rank() }.into());
            }
            let is_own = rank == group.rank();
            // What does not come whole over a link has to fit into one of its words.
            if !is_own && descriptor_bytes > 8 && !is_linked(memory.context().cu_device(), &card) {
                return Err(CudaError::NoPeer { rank });
            }
            let begin = if is_own { card.address } else { mailbox.reach(rank, &card)? };
            addresses.push(begin + CONTROL_BYTES);
        }
        mailbox.table.write(0, bytemuck::cast_slice(&addresses))?;
        // None writes before all can. Where one does not hear of all, another one may have, and write.
        match group.barrier() {
            Ok(()) => Ok(mailbox),
            Err(error) => {
                mailbox.leave();
                Err(error.into())
            }
        }
    }

    /// The address here of another rank's memory.
    fn reach(&mut self, rank: usize, card: &Card) -> Result<sys::CUdeviceptr, CudaError> {
        if card.process == *PROCESS {
            let context = std::ptr::with_exposed_provenance_mut::<sys::CUctx_st>(card.context as usize);
            // SAFETY: the context is of a rank of this process, which waits for this one in the barrier behind the exchange.
            return match unsafe { sys::cuCtxEnablePeerAccess(context, 0) } {
                CUresult::CUDA_SUCCESS | CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(card.address),
                CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED => Err(CudaError::NoPeer { rank }),
                error => error.result().map(|()| 0).during(|| format!("reaching the memory of rank {rank}")),
            };
        }
        if card.host != *HOST {
            return Err(CudaError::OtherHost { rank });
        }
        let handle = sys::CUipcMemHandle { reserved: bytemuck::cast(card.handle) };
        let flags = sys::CUipcMem_flags_enum::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        let mut address = 0;
        // SAFETY: a valid pointer; whatever the handle is of, the driver checks it. It is closed in `drop`.
        match unsafe { sys::cuIpcOpenMemHandle_v2(&raw mut address, handle, flags) } {
            CUresult::CUDA_SUCCESS => {
                self.opened.push(address);
                Ok(address)
            }
            CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED => Err(CudaError::NoPeer { rank }),
            error => error.result().map(|()| 0).during(|| format!("opening the memory of rank {rank}")),
        }
    }

    /// Whether it has room.
    pub(super) fn holds(&self, descriptors: u64) -> bool {
        self.capacity >= descriptors
    }

    /// Where a launch finds all of it: control block, descriptors and how many, and the addresses of all mailboxes.
    pub(super) fn places(&self) -> (u64, u64, u64, u64) {
        let begin = self.own.address();
        (begin, begin + DESCRIPTORS, self.capacity, self.table.address())
    }

    /// Tells this rank's kernels that nobody is to wait any more.
    pub(super) fn give_up(&self) -> Result<(), CudaError> {
        self.own.write(CONTROL_BYTES + offset_of!(abi::lookback_mailbox, is_given_up) as u64, &1_u32.to_le_bytes())
    }

    /// Lets go of other processes' memory, before those free it. This rank's kernels are done.
    pub(super) fn close(&mut self) {
        for address in self.opened.drain(..) {
            // SAFETY: opened in `reach`, closed here alone; nobody uses it any more. What the driver says is of no use to anybody.
            let _ = unsafe { sys::cuIpcCloseMemHandle(address) };
        }
    }

    /// Leaves the memory alone, because another rank may still write into it.
    pub(super) fn leave(self) {
        std::mem::forget(self);
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.close();
    }
}

/// Whether a GPU writes into the memory of another rank's as into its own. Where that one is not seen here nobody knows.
fn is_linked(own: sys::CUdevice, card: &Card) -> bool {
    let mut other = 0;
    // SAFETY: a valid pointer, and text that ends in 0 (`bus_of`).
    let found = unsafe { sys::cuDeviceGetByPCIBusId(&raw mut other, card.bus.as_ptr().cast()) };
    found != CUresult::CUDA_SUCCESS || writes_whole(own, other)
}

/// Whether the GPUs 0 to `count` - 1 write into each other's memory as into their own. The driver was probed.
#[cfg(feature = "lab")]
pub(crate) fn are_linked(count: usize) -> bool {
    let devices: Result<Vec<_>, _> = (0..count as i32).map(cudarc::driver::result::device::get).collect();
    devices.is_ok_and(|devices| {
        let reaches = |&one: &sys::CUdevice, &other: &sys::CUdevice| one == other || writes_whole(one, other);
        devices.iter().all(|one| devices.iter().all(|other| reaches(one, other)))
    })
}

/// Whether a GPU's stores into the memory of another one come whole, 16 bytes at a time, as by NVLink.
fn writes_whole(own: sys::CUdevice, other: sys::CUdevice) -> bool {
    let mut is_native = 0;
    let attribute = sys::CUdevice_P2PAttribute::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
    // SAFETY: a valid pointer, and devices that the driver has named.
    let asked = unsafe { sys::cuDeviceGetP2PAttribute(&raw mut is_native, attribute, own, other) };
    asked == CUresult::CUDA_SUCCESS && is_native != 0
}

/// The place of a GPU in its host, as text that ends in 0; nothing where the driver does not say.
fn bus_of(device: sys::CUdevice) -> [u8; 16] {
    let mut bus = [0_u8; 16];
    // SAFETY: a valid pointer to so many bytes.
    let _ = unsafe { sys::cuDeviceGetPCIBusId(bus.as_mut_ptr().cast(), bus.len() as i32, device) };
    bus[bus.len() - 1] = 0;
    bus
}

/// The handle by which other processes open a buffer; nothing where there are none.
fn handle_of(buffer: &Buffer) -> [[u8; 32]; 2] {
    let mut handle = sys::CUipcMemHandle { reserved: [0; 64] };
    // SAFETY: a valid pointer, and the first address of an allocation of this context, which is current.
    match unsafe { sys::cuIpcGetMemHandle(&raw mut handle, buffer.address()) } {
        CUresult::CUDA_SUCCESS => bytemuck::cast(handle.reserved),
        _ => [[0; 32]; 2],
    }
}

/// A number of the host that changes when it starts anew.
static HOST: LazyLock<u64> = LazyLock::new(|| {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    u64::from_str_radix(&boot.chars().filter(char::is_ascii_hexdigit).take(16).collect::<String>(), 16).unwrap_or(0)
});

/// A number that no other process has.
static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
