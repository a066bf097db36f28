//! The peers: other people's scans of the same arrays, and the copies that are the floor under all of them.
//!
//! They are here so that one timer measures them and us in one run, on one clock, over one input; a figure from
//! someone else's paper is from someone else's machine. Cargo feature `peers` compiles them in (it needs nvcc, see
//! [`HOW_TO_ENABLE`]); without it [`all`] is empty and the rest of this module still compiles.
//!
//! | peer | what runs |
//! |---|---|
//! | `cub-3.0.1`, `cub-3.5.0` | `cub::DeviceScan` with a count of 32 bits: the call as CUB documents it (`int num_items`), kernels with 32-bit offsets |
//! | `…-64-bit-count` | the same with a count of 64 bits (`size_t`), kernels with 64-bit offsets |
//! | `…-narrow-sum` | sums of 8 and 16 bits that are added up in their own type (`cuda::std::plus<T>`); the calls without an operator add them up in `int` |
//! | `cub-3.5.0-run-to-run` | sums of floats whose order of additions is fixed (`execution::determinism::run_to_run`) |
//! | `thrust-3.0.1`, `thrust-3.5.0` | `thrust::exclusive_scan` with `par_nosync` and memory that was allocated before |
//! | `…-synchronous` | the same with `par`: allocates, waits and frees in each call, as `thrust::device` does |
//! | `memcpy` | `cudaMemcpyAsync` from device to device |
//! | `copy-16-byte` | a kernel that loads and stores 16 bytes a lane |
//!
//! CUB 3.0.1 is what CUDA 13.0 ships, CUB 3.5.0 the newest. Both are in one binary: each is compiled into a
//! namespace of its own.
//!
//! ```no_run
//! # #[cfg(feature = "cuda")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use lookback::element::{ElementType, Instance, Operator};
//! use lookback::lab::peers;
//! use lookback::strategy::Mode;
//!
//! lookback::cuda::toolkit::probe_driver()?; // cudarc panics where there is no driver
//! let stream = cudarc::driver::CudaContext::new(0)?.new_stream()?;
//! let input = stream.clone_htod(&[3_u32, 1, 4, 1, 5])?;
//! let mut output = stream.alloc_zeros::<u32>(5)?;
//!
//! let sum = Instance::new(ElementType::U32, Operator::Sum)?;
//! let mut scan = peers::by_name("cub-3.5.0")?.prepare(&stream, sum, Mode::Inclusive, 5)?;
//! scan.launch(&input, &mut output)?;
//! assert_eq!(stream.clone_dtoh(&output)?, [3, 4, 8, 9, 14]);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "cuda"))]
//! # fn main() {}
//! ```

mod entry;
#[cfg(feature = "cuda")]
mod prepared;

#[cfg(feature = "cuda")]
pub use prepared::PreparedPeer;

use crate::element::{ElementType, Instance};
use crate::strategy::Mode;
use entry::Entry;
use std::ffi::CStr;
use std::sync::LazyLock;

/// What to tell a user whose build has no peers.
pub const HOW_TO_ENABLE: &str = "this build has no peers; run scripts/install-cuda.sh (nvcc without root) and build \
                                 with `cargo build --release --features peers`";

/// One peer, for all the types, operators and modes that it exists for.
#[derive(Debug)]
pub struct Peer {
    name: &'static str,
    version: u32,
    scan: bool,
    capturable: bool,
    largest_n: u64,
    variants: Vec<Variant>,
}

/// What one entry of a peer computes; a copy has one entry for every array.
#[derive(Debug)]
struct Variant {
    scan: Option<(Instance, Mode)>,
    entry: &'static Entry,
}

/// Why a peer could not run.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// No peer has this name; `choices` are the names there are, or how to get some.
    #[error("no peer is called '{name}'; {choices}")]
    Unknown { name: String, choices: String },
    /// The peer has no such scan.
    #[error("{peer} has no {mode} scan of {instance}; it has {choices}")]
    Unsupported { peer: &'static str, instance: Instance, mode: Mode, choices: String },
    /// More elements than the peer's count can hold.
    #[error("{peer} takes at most {largest} elements, not {n}; its variant with a 64-bit count takes more")]
    TooLarge { peer: &'static str, n: u64, largest: u64 },
    /// An "input" or "output" whose number of elements is not what was prepared.
    #[error("the {array} has {found} element(s), and the peer was prepared for {expected}")]
    LengthMismatch { array: &'static str, found: u64, expected: u64 },
    /// Arrays of another element type than was prepared.
    #[error("the arrays hold {found}, and the peer was prepared for {expected}")]
    ElementMismatch { found: ElementType, expected: ElementType },
    /// An "input" or "output" of another context.
    #[error("the {array} belongs to another CUDA context than the peer's stream")]
    WrongContext { array: &'static str },
    /// A call of the CUDA runtime or driver failed.
    #[cfg(feature = "cuda")]
    #[error(transparent)]
    Cuda(#[from] crate::cuda::CudaError),
}

/// Every peer of this build, in the order of the module's table; none without the feature `peers`.
pub fn all() -> &'static [Peer] {
    static PEERS: LazyLock<Vec<Peer>> = LazyLock::new(|| {
        let mut peers: Vec<Peer> = Vec::new();
        for entry in entry::entries() {
            // SAFETY: a string literal in the table's object file.
            let name = unsafe { CStr::from_ptr(entry.name) }.to_str().unwrap_or("?");
            let scan = entry.kind == entry::KIND_SCAN;
            let variant = Variant { scan: scan.then(|| scan_of(entry)).flatten(), entry };
            match peers.iter_mut().find(|peer| peer.name == name) {
                Some(peer) => {
                    peer.largest_n = peer.largest_n.min(entry.largest_n);
                    peer.variants.push(variant);
                }
                None => peers.push(Peer {
                    name,
                    version: entry.version,
                    scan,
                    capturable: entry.capturable != 0,
                    largest_n: entry.largest_n,
                    variants: vec![variant],
                }),
            }
        }
        // Scans by library and version, then the copies; the build has the copies first.
        peers.sort_by_key(|peer| (!peer.scan, peer.name));
        peers
    });
    &PEERS
}

/// Instance and mode of a scan's entry.
fn scan_of(entry: &Entry) -> Option<(Instance, Mode)> {
    // SAFETY: string literals in the table's object file; only copies have none.
    let text = |name| unsafe { CStr::from_ptr(name) }.to_str().ok();
    let (element, operator) = (text(entry.element)?.parse().ok()?, text(entry.operation)?.parse().ok()?);
    let mode = *Mode::ALL.get(entry.mode as usize)?;
    Some((Instance::new(element, operator).ok()?, mode))
}

/// The peer with this name.
///
/// # Errors
/// [`PeerError::Unknown`], which lists the names there are or says how to get some.
pub fn by_name(name: &str) -> Result<&'static Peer, PeerError> {
    all().iter().find(|peer| peer.name == name).ok_or_else(|| {
        let names: Vec<_> = all().iter().map(Peer::name).collect();
        let choices =
            if names.is_empty() { String::from(HOW_TO_ENABLE) } else { format!("choose from {}", names.join(", ")) };
        PeerError::Unknown { name: name.to_owned(), choices }
    })
}

impl Peer {
    /// The name in records and plots, with the version of the library in it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Major, minor and patch version of the library, read from the headers that were compiled: CUB and Thrust
    /// share theirs, `memcpy` has that of the CUDA runtime. `None` for what is this crate's own.
    pub fn library_version(&self) -> Option<(u32, u32, u32)> {
        let version = self.version;
        match (self.scan, version) {
            (_, 0) => None,
            // CUB_VERSION is major·100000 + minor·100 + patch, CUDART_VERSION major·1000 + minor·10.
            (true, _) => Some((version / 100_000, version / 100 % 1000, version % 100)),
            (false, _) => Some((version / 1000, version % 1000 / 10, 0)),
        }
    }

    /// Whether it scans; the others copy, for every instance and mode, and their output is their input.
    pub fn is_scan(&self) -> bool {
        self.scan
    }

    /// Whether it may be captured into a CUDA graph. What allocates or waits inside the call may not.
    pub fn is_capturable(&self) -> bool {
        self.capturable
    }

    /// The scans that it has; empty for a copy, which takes any array.
    pub fn scans(&self) -> impl Iterator<Item = (Instance, Mode)> {
        self.variants.iter().filter_map(|variant| variant.scan)
    }

    /// Whether it scans this instance in this mode, or copies.
    pub fn supports(&self, instance: Instance, mode: Mode) -> bool {
        !self.scan || self.scans().any(|scan| scan == (instance, mode))
    }

    /// The most elements of this instance that it takes.
    pub fn largest_n(&self, instance: Instance) -> u64 {
        if self.scan { self.largest_n } else { self.largest_n / instance.element().bytes() as u64 }
    }

    /// The entry for this scan, or for any array if this is a copy.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only a build with CUDA launches peers"))]
    fn entry(&self, instance: Instance, mode: Mode) -> Result<&'static Entry, PeerError> {
        let found = self.variants.iter().find(|variant| !self.scan || variant.scan == Some((instance, mode)));
        found.map(|variant| variant.entry).ok_or_else(|| {
            let choices: Vec<_> = self.scans().map(|(instance, mode)| format!("{instance} {mode}")).collect();
            PeerError::Unsupported { peer: self.name, instance, mode, choices: choices.join(", ") }
        })
    }
}
