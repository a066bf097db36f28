//! The peers: other people's scans of the same arrays, and the copies and readings that are the floor under all of them.
//!
//! They are here so that one timer measures them and us in one run, on one clock, over one input; a figure from
//! someone else's paper is from someone else's machine. Cargo feature `peers` compiles them in (it needs nvcc, see
//! [`HOW_TO_ENABLE`]); without it [`all`] is empty and the rest of this module still compiles.
//!
//! | peer | what runs |
//! |---|---|
//! | `cub-3.0.1`, `cub-3.5.0` | `cub::DeviceScan` with a count of 32 bits: the call as CUB documents it (`int num_items`), kernels with 32-bit offsets. In reverse by reverse iterators, by key `InclusiveSumByKey` and `ExclusiveSumByKey`, from narrow numbers into wide ones by a transform iterator, halves by one that makes `f32` of them and one that makes halves of sums (the call without iterators adds them up in halves and rounds each time, so it is none), recurrences as compositions of maps, which a transform iterator loads from two arrays. What is stored by rank by `DeviceSelect::If`, `DevicePartition::Flagged`, `DeviceSelect::Unique`, `DeviceReduce::ReduceByKey` whose unique keys go to a discard iterator, `DeviceRunLengthEncode::Encode` and `NonTrivialRuns`, and for places of what is not 0 `DeviceSelect::Flagged` over a counting iterator; how many are kept is stored, too. Sorts by `DeviceRadixSort::SortKeys` and `SortPairs`, histograms by `DeviceHistogram::HistogramEven` and `HistogramRange`, the cumulated one with a sum behind; of even bins those of unsigned integers alone, because it rounds floats otherwise, and subtracts signed ends in their own type |
//! | `…-wide-sum` | sums of narrow numbers in wide ones, and of halves, without an iterator, by an operator of the wide type (`cuda::std::plus<T>`), in which CUB then adds up |
//! | `…-computed-keys` | rows by the sums by key, whose keys are not loaded but computed: an element's index divided by the elements of a row |
//! | `cub-3.5.0-segmented` | rows and segments between offsets by `cub::DeviceSegmentedScan`, which 3.0.1 does not have |
//! | `…-64-bit-count` | the flat scans with a count of 64 bits (`size_t`), kernels with 64-bit offsets |
//! | `…-narrow-sum` | sums of 8 and 16 bits that are added up in their own type (`cuda::std::plus<T>`); the calls without an operator add them up in `int` |
//! | `cub-3.5.0-run-to-run` | sums of floats whose order of additions is fixed (`execution::determinism::run_to_run`) |
//! | `thrust-3.0.1`, `thrust-3.5.0` | `thrust::exclusive_scan` with `par_nosync` and memory that was allocated before |
//! | `…-synchronous` | the same with `par`: allocates, waits and frees in each call, as `thrust::device` does |
//! | `memcpy` | `cudaMemcpyAsync` from device to device |
//! | `copy-16-byte` | a kernel that loads and stores 16 bytes a lane |
//! | `reduction-cub-…` | `cub::DeviceReduce::Sum` over the input as words of 4 bytes: reading alone |
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

use crate::element::{ElementType, Operator};
use crate::lab::workload::{NoSuchWorkload, ProblemKind, Workload};
use crate::strategy::Mode;
use entry::Entry;
use std::ffi::{CStr, c_char};
use std::fmt;
use std::sync::LazyLock;

/// What to tell a user whose build has no peers.
pub const HOW_TO_ENABLE: &str = "this build has no peers; run scripts/install-cuda.sh (nvcc without root) and build \
                                 with `cargo build --release --features peers`";

/// One peer, for all the problems, types, operators and modes that it exists for.
#[derive(Debug)]
pub struct Peer {
    name: &'static str,
    version: u32,
    kind: PeerKind,
    capturable: bool,
    variants: Vec<Variant>,
}

/// What a peer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeerKind {
    /// It scans, or does what else a [`Workload`] is.
    Scan,
    /// It copies one array into another one of its type, whatever is scanned.
    Copy,
    /// It adds up the words of 4 bytes of the one input, modulo 2^32, and stores the sum where the output begins.
    Reading,
}

/// `lookback_peer_kind` of `cuda/peers/peers.h`, by its numbers.
const KINDS: [PeerKind; 3] = [PeerKind::Scan, PeerKind::Copy, PeerKind::Reading];

/// What one entry of a peer computes; a copy or reading has one entry for every array.
#[derive(Debug)]
struct Variant {
    scan: Option<PeerScan>,
    entry: &'static Entry,
}

/// A scan that a peer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PeerScan {
    /// What is scanned.
    pub problem: ProblemKind,
    /// What is loaded.
    pub input: ElementType,
    /// What is stored.
    pub element: ElementType,
    /// The operator; a recurrence has none.
    pub operator: Option<Operator>,
    /// What is computed.
    pub mode: Mode,
}

impl PeerScan {
    /// What a workload asks of a peer; none of a recurrence by rows, because a peer's is one sequence.
    pub fn asked_by(workload: Workload, mode: Mode) -> Option<Self> {
        let problem = workload.kind();
        let is_of_rows = workload.line_elements().is_some();
        (problem.needs_shape() == is_of_rows).then_some(Self {
            problem,
            input: workload.input(),
            element: workload.element(),
            operator: workload.operator(),
            mode,
        })
    }

    /// What an entry of the tables scans; none of a copy.
    fn of(entry: &Entry) -> Option<Self> {
        // SAFETY: names are null or string literals in the table's object file.
        let text =
            |name: *const c_char| (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_str().ok()).flatten();
        Some(Self {
            problem: text(entry.problem)?.parse().ok()?,
            input: text(entry.input)?.parse().ok()?,
            element: text(entry.element)?.parse().ok()?,
            operator: text(entry.operation).map(str::parse).transpose().ok()?,
            mode: *Mode::ALL.get(entry.mode as usize)?,
        })
    }

    /// The workload that asks for it, in segments of so many elements if the problem has segments.
    ///
    /// # Errors
    /// When there is no such workload, as in segments of no elements.
    pub fn workload(self, segment_elements: u64) -> Result<Workload, NoSuchWorkload> {
        let has_segments = self.problem.needs_shape() || self.problem.has_runs();
        let operator = self.operator.unwrap_or(Operator::Sum);
        let segment_elements = has_segments.then_some(segment_elements);
        Workload::with_halves(self.problem, operator, self.input, self.element, segment_elements)
    }
}

/// "by-key, i32 sum, exclusive", "flat, u32 sum of u8, inclusive", "recurrence, f32, inclusive".
impl fmt::Display for PeerScan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { problem, input, element, operator, mode } = self;
        let operator = operator.map_or(String::new(), |operator| format!(" {operator}"));
        let of = if input == element { String::new() } else { format!(" of {input}") };
        formatter.pad(&format!("{problem}, {element}{operator}{of}, {mode}"))
    }
}

/// Why a peer could not run.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// No peer has this name; `choices` are the names there are, or how to get some.
    #[error("no peer is called '{name}'; {choices}")]
    Unknown { name: String, choices: String },
    /// The peer has no such scan.
    #[error("{peer} has no scan '{workload}, {mode}'; it has {choices}")]
    Unsupported { peer: &'static str, workload: Workload, mode: Mode, choices: String },
    /// Elements that do not fill rows.
    #[error("{0}")]
    Misfit(String),
    /// More elements than the peer's count can hold.
    #[error("{peer} takes at most {largest} elements, not {n}; of flat scans a variant with a 64-bit count takes more")]
    TooLarge { peer: &'static str, n: u64, largest: u64 },
    /// An "input" or "output" whose number of elements is not what was prepared.
    #[error("the {array} has {found} element(s), and the peer was prepared for {expected}")]
    LengthMismatch { array: &'static str, found: u64, expected: u64 },
    /// An "input" or "output" of another element type than was prepared.
    #[error("the {array} holds {found}, and the peer was prepared for {expected}")]
    ElementMismatch { array: &'static str, found: ElementType, expected: ElementType },
    /// More or fewer inputs than the problem has.
    #[error("{found} input(s) are given, and '{workload}' loads {expected}")]
    WrongInputs { workload: Workload, found: usize, expected: usize },
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
            let kind = KINDS[entry.kind as usize];
            let variant = Variant { scan: PeerScan::of(entry), entry };
            match peers.iter_mut().find(|peer| peer.name == name) {
                Some(peer) => peer.variants.push(variant),
                None => peers.push(Peer {
                    name,
                    version: entry.version,
                    kind,
                    capturable: entry.capturable != 0,
                    variants: vec![variant],
                }),
            }
        }
        // Scans by library and version, then the copies and readings; the build has the copies first.
        peers.sort_by_key(|peer| (peer.kind, peer.name));
        peers
    });
    &PEERS
}

/// The names by which sweeps ask for peers: of all but the copies, which stand at every point.
pub(crate) fn names() -> Vec<String> {
    all().iter().filter(|peer| peer.kind != PeerKind::Copy).map(|peer| peer.name.to_owned()).collect()
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
        match (self.kind, version) {
            (_, 0) => None,
            // CUB_VERSION is major·100000 + minor·100 + patch, CUDART_VERSION major·1000 + minor·10.
            (PeerKind::Copy, _) => Some((version / 1000, version % 1000 / 10, 0)),
            _ => Some((version / 100_000, version / 100 % 1000, version % 100)),
        }
    }

    /// What it does.
    pub fn kind(&self) -> PeerKind {
        self.kind
    }

    /// Whether it scans.
    pub fn is_scan(&self) -> bool {
        self.kind == PeerKind::Scan
    }

    /// Whether it may be captured into a CUDA graph. What allocates or waits inside the call may not.
    pub fn is_capturable(&self) -> bool {
        self.capturable
    }

    /// The scans that it has; empty for a copy or reading.
    pub fn scans(&self) -> impl Iterator<Item = PeerScan> {
        self.variants.iter().filter_map(|variant| variant.scan)
    }

    /// Whether it scans so many elements of this workload in this mode, or copies or reads them.
    pub fn supports(&self, workload: impl Into<Workload>, mode: Mode, n: u64) -> bool {
        self.entry(workload.into(), mode, n).is_ok()
    }

    /// The entry for this scan, or for its copy or reading.
    fn entry(&self, workload: Workload, mode: Mode, n: u64) -> Result<&'static Entry, PeerError> {
        let asked = PeerScan::asked_by(workload, mode);
        let is_one_copied = workload.kind().has_one_input() && workload.input() == workload.element();
        let is_it = |variant: &&Variant| match self.kind {
            PeerKind::Scan => variant.scan.is_some() && asked == variant.scan,
            PeerKind::Copy => is_one_copied,
            // It stores a word, also of nothing.
            PeerKind::Reading => {
                let is_of_words = n.saturating_mul(self.counted_bytes(workload)).is_multiple_of(4);
                n > 0 && workload.inputs(n).count() == 1 && is_of_words && workload.output_bytes(n) >= 4
            }
        };
        let entry = self.variants.iter().find(is_it).map(|variant| variant.entry).ok_or_else(|| {
            let choices = match self.kind {
                PeerKind::Scan => self.scans().map(|scan| scan.to_string()).collect::<Vec<_>>().join("; "),
                PeerKind::Copy => String::from("copies of one array of that type"),
                PeerKind::Reading => String::from("readings of one array of whole words of 4 bytes"),
            };
            PeerError::Unsupported { peer: self.name, workload, mode, choices }
        })?;
        let largest = entry.largest_n / self.counted_bytes(workload);
        match workload.misfit(n) {
            Some(why) => Err(PeerError::Misfit(why)),
            None if n > largest => Err(PeerError::TooLarge { peer: self.name, n, largest }),
            None => Ok(entry),
        }
    }

    /// What the entry counts for an element: a scan 1, a copy or reading its bytes.
    fn counted_bytes(&self, workload: Workload) -> u64 {
        match self.kind {
            PeerKind::Scan => 1,
            PeerKind::Copy => workload.element().bytes() as u64,
            PeerKind::Reading => workload.input().bytes() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_have_a_workload_that_asks_for_their_peers() {
        for element in [ElementType::F16, ElementType::BF16] {
            let (problem, mode) = (ProblemKind::Flat, Mode::Inclusive);
            let scan = PeerScan { problem, input: element, element, operator: Some(Operator::Sum), mode };
            let workload = scan.workload(1).expect("sums of halves in f32");
            assert_eq!(PeerScan::asked_by(workload, mode), Some(scan));
        }
    }
}
