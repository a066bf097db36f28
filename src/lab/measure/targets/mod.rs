//! What this crate wants to reach, as data, and the verdict on it from records alone.
//!
//! A [`Target`] names points (types, operators, sizes of the input, how the arrays lie), figures, and what they are
//! compared with. [`evaluation::evaluate`] looks every such figure up in the records of the sweep `targets`, one a process, and says
//! how many reach the target, which is the worst, and how near the misses are to their bound: the same kernel without its waiting,
//! measured in the same rounds. Of several processes the middle of their ratios counts. A target that nothing was measured for is a
//! miss, and so is a figure that is missing where it has to be. A [`HostTarget`] is of what a program waits for on the host.

pub mod evaluation;
pub mod text;

use super::call_times::CallTimes;
use super::record::SweepRow;
use super::sampling::Figure;
use crate::element::{ElementType, Operator};
use crate::strategy::Mode;

/// The sweep that measures what the targets ask for.
pub const SWEEP: &str = "targets";
/// The subject whose figures are this crate's.
pub const SUBJECT: &str = "auto";
/// Short name of the GPU that the targets are for, as in file names.
pub const GPU: &str = "h200";
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Something to reach.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Where, in a few words.
    pub place: &'static str,
    /// Element types.
    pub types: &'static [ElementType],
    /// Operators; those that a type does not have are passed over.
    pub operators: &'static [Operator],
    /// Modes.
    pub modes: &'static [Mode],
    /// Bytes of the input, from and to.
    pub bytes: (u64, u64),
    /// How input and output lie.
    pub arrays: Arrays,
    /// The figures.
    pub figures: &'static [Figure],
    /// What they are compared with.
    pub yardstick: Yardstick,
    /// The least time of what it is compared with, by ours, that reaches the target.
    pub threshold: f64,
}

/// How the arrays of a target's points lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrays {
    /// Both at a 16-byte boundary.
    AtBoundary,
    /// Both at a 16-byte boundary, whole vectors of 16 bytes.
    WholeVectors,
    /// One of them off a boundary.
    OffBoundary,
}

/// What a figure is compared with, always at the same point and in the same rounds, but for [`Self::Neighbour`] and
/// [`Self::Octave`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Yardstick {
    /// The fastest scan of CUB and Thrust in the record, of any version, width of the count and way of adding up. Cold times are
    /// compared as the events said them, the empty frame left in.
    Cub,
    /// The fastest copy kernel of the record, whatever it is; the driver's copy is none.
    CopyKernel,
    /// The same with n rounded up to 16 bytes and both arrays at a boundary.
    Neighbour,
    /// The lead over [`Self::Cub`], by the lower of the leads at two sizes an octave apart between which it lies: of all such pairs the
    /// one that is worst.
    Octave,
}

impl Yardstick {
    /// What stands behind the threshold.
    pub(super) const fn of(self) -> &'static str {
        match self {
            Self::Cub => "CUB",
            Self::CopyKernel => "copy kernel",
            Self::Neighbour => "aligned",
            Self::Octave => "an octave's ends",
        }
    }

    /// Whether the ratio is read as a percentage.
    const fn is_percent(self) -> bool {
        !matches!(self, Self::Cub)
    }

    /// The ratio as a reader wants it.
    pub fn show(self, ratio: f64) -> String {
        if self.is_percent() { format!("{:.1} %", 100.0 * ratio) } else { format!("{ratio:.2} x") }
    }
}

/// The types that are judged at four sizes an octave.
const SIX: &[ElementType] =
    &[ElementType::U8, ElementType::U16, ElementType::I32, ElementType::F32, ElementType::I64, ElementType::F64];
/// Every other one that the peers have, at a size an octave.
const OTHERS: &[ElementType] =
    &[ElementType::I8, ElementType::I16, ElementType::U32, ElementType::U64, ElementType::F16, ElementType::BF16];
const BACK_TO_BACK: &[Figure] = &[Figure::Graph];
const BEHIND: &[Figure] = &[Figure::Behind];
const COLD: &[Figure] = &[Figure::Cold];
const BEHIND_AND_COLD: &[Figure] = &[Figure::Behind, Figure::Cold];
const CALLS: &[Figure] = &[Figure::Call];
const DEVICE: &[Figure] = &[Figure::Graph, Figure::Behind, Figure::Cold];

/// A target of sums against CUB, which the others are variations of.
const SUMS: Target = Target {
    place: "",
    types: SIX,
    operators: &[Operator::Sum],
    modes: &[Mode::Inclusive],
    bytes: (256, 4 * GIB),
    arrays: Arrays::AtBoundary,
    figures: BACK_TO_BACK,
    yardstick: Yardstick::Cub,
    threshold: 1.1,
};
const OF_OTHERS: Target = Target { place: "other types", types: OTHERS, ..SUMS };
const EXCLUSIVE: Target = Target { place: "exclusive", modes: &[Mode::Exclusive], ..SUMS };
const MAXIMA: Target = Target { place: "maximum", operators: &[Operator::Max], ..SUMS };
const SMALL: Target = Target { place: "<= 64 KiB", bytes: (0, 64 * KIB), ..SUMS };
const OF_COPIES: Target = Target {
    modes: &[Mode::Inclusive, Mode::Exclusive],
    arrays: Arrays::WholeVectors,
    figures: DEVICE,
    yardstick: Yardstick::CopyKernel,
    threshold: 1.0,
    ..SUMS
};

/// All targets, in the order of the table.
pub const TARGETS: &[Target] = &[
    Target { place: "anywhere", ..SUMS },
    Target { place: "anywhere", figures: BEHIND, threshold: 1.05, ..SUMS },
    Target { place: "anywhere", figures: COLD, threshold: 1.05, ..SUMS },
    OF_OTHERS,
    Target { figures: BEHIND_AND_COLD, threshold: 1.05, ..OF_OTHERS },
    EXCLUSIVE,
    Target { figures: BEHIND_AND_COLD, threshold: 1.05, ..EXCLUSIVE },
    MAXIMA,
    Target { figures: BEHIND_AND_COLD, threshold: 1.05, ..MAXIMA },
    Target { place: SMALL.place, figures: BEHIND, threshold: 1.4, ..SMALL },
    Target { place: SMALL.place, figures: CALLS, threshold: 2.0, ..SMALL },
    Target {
        place: "no notch",
        arrays: Arrays::WholeVectors,
        figures: DEVICE,
        yardstick: Yardstick::Octave,
        threshold: 0.9,
        ..SUMS
    },
    Target { place: "64 MiB", bytes: (64 * MIB, 64 * MIB), ..OF_COPIES },
    Target { place: "256 MiB", bytes: (256 * MIB, 256 * MIB), ..OF_COPIES },
    Target { place: "1 GiB", bytes: (GIB, GIB), ..OF_COPIES },
    Target { place: "4 GiB", bytes: (4 * GIB, 4 * GIB), ..OF_COPIES },
    Target {
        place: "any offsets",
        modes: &[Mode::Inclusive, Mode::Exclusive],
        bytes: (4 * KIB, u64::MAX),
        arrays: Arrays::OffBoundary,
        figures: DEVICE,
        yardstick: Yardstick::Neighbour,
        threshold: 0.93,
        ..SUMS
    },
];

/// Something to reach on the host, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostTarget {
    /// What it is, in a few words.
    pub place: &'static str,
    /// The most that reaches it.
    pub most_us: f64,
    /// What is measured.
    pub wait: Wait,
}

/// What a program waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// A call, until it returns; cudarc's event tracking as it comes.
    Call,
    /// A new scanner in a new process, and its first scan, until it is done.
    Start {
        /// Whether the kernels that it needs are kept compiled.
        has_kernels: bool,
    },
}

impl HostTarget {
    /// What was measured of it, in microseconds.
    pub(super) fn found_us(&self, times: &CallTimes) -> Option<f64> {
        match self.wait {
            Wait::Call => times.returned_us(),
            Wait::Start { has_kernels } => times.start_us(has_kernels),
        }
    }
}

/// All of them.
pub const HOST_TARGETS: &[HostTarget] = &[
    HostTarget { place: "a call returns", most_us: 3.0, wait: Wait::Call },
    HostTarget { place: "scanner, kernels kept", most_us: 20e3, wait: Wait::Start { has_kernels: true } },
    HostTarget { place: "scanner, empty cache", most_us: 150e3, wait: Wait::Start { has_kernels: false } },
];

impl Target {
    /// What is asked for: "graph: 1.10 x CUB".
    pub fn demand(&self) -> String {
        let figures = match self.figures {
            figures if figures == DEVICE => String::new(),
            figures => format!("{}: ", figures.iter().map(|figure| figure.name()).collect::<Vec<_>>().join(", ")),
        };
        format!("{figures}{} {}", self.yardstick.show(self.threshold), self.yardstick.of())
    }

    /// Whether a row of our subject is one of the target's points. Every such row of the committed sweep has to be in a
    /// record, with those of the target's figures that the sweep has there.
    pub(super) fn covers(&self, row: &SweepRow) -> bool {
        let bytes = input_bytes(row);
        row.mode.is_some_and(|mode| self.modes.contains(&mode))
            && self.types.contains(&row.element)
            && self.operators.contains(&row.operator)
            && (self.bytes.0..=self.bytes.1).contains(&bytes)
            && match self.arrays {
                Arrays::AtBoundary => row.offsets.is_aligned(),
                Arrays::WholeVectors => row.offsets.is_aligned() && bytes.is_multiple_of(16),
                Arrays::OffBoundary => !row.offsets.is_aligned(),
            }
    }
}

const fn input_bytes(row: &SweepRow) -> u64 {
    row.n.saturating_mul(row.element.bytes() as u64)
}
