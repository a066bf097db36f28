//! What this crate wants to reach, as data, and the verdict on it from a record alone.
//!
//! A [`Target`] names points (types, operators, sizes of the input, how the arrays lie), figures, and what they are
//! compared with. [`evaluation::evaluate`] looks every such figure up in the record of the sweep `targets` and says how many reach
//! the target, which is the worst, and how near the misses are to their bound: the same kernel without its waiting,
//! measured in the same rounds. A target that nothing was measured for is a miss, and so is a figure that is missing
//! where it has to be.

pub mod evaluation;
pub mod text;

use super::record::SweepRow;
use super::sampling::Figure;
use crate::element::{ElementType, Operator};

/// The sweep that measures what the targets ask for.
pub const SWEEP: &str = "targets";
/// The subject whose figures are this crate's.
pub const SUBJECT: &str = "auto";
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
    /// Bytes of the input, from and to.
    pub bytes: (u64, u64),
    /// How input and output lie.
    pub arrays: Arrays,
    /// The figures.
    pub figures: &'static [Figure],
    /// What they are compared with.
    pub yardstick: Yardstick,
    /// The least time of what it is compared with, by ours, that reaches the target. Of no use to
    /// [`Yardstick::NotSlower`].
    pub threshold: f64,
    /// What would be better still.
    pub stretch: Option<f64>,
    /// Short name of the GPU that the target is for, as in file names.
    pub gpu: &'static str,
    /// Whether it decides. What follows from another target is shown and decides nothing.
    pub decides: bool,
}

/// How the arrays of a target's points lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrays {
    /// Both at a 16-byte boundary, whole vectors of 16 bytes.
    Aligned,
    /// Everything else: some array off a boundary, or a last vector that is not full.
    Odd,
    /// Anyhow.
    Any,
}

/// What a figure is compared with, always at the same point and in the same rounds, but for [`Self::Neighbour`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Yardstick {
    /// The fastest scan of CUB and Thrust in the record, of any version, width of the count and way of adding up.
    Cub,
    /// CUB 3.5.0 with `determinism::run_to_run`, and whether ours is the same from run to run.
    RunToRun,
    /// The driver's copy. In a graph it is the faster of its figures in a graph and on a stream, because large copies
    /// take longer when they are replayed, which says nothing about a scan.
    Memcpy,
    /// The same with n rounded up to 16 bytes and both arrays at a boundary.
    Neighbour,
    /// Our own strategy whose sums of floats need not be the same from run to run: look-back.
    NotDeterministic,
    /// CUB, by the samples: a figure misses if it is slower beyond noise.
    NotSlower,
}

impl Yardstick {
    /// What stands behind the threshold.
    pub(super) const fn of(self) -> &'static str {
        match self {
            Self::Cub | Self::NotSlower => "CUB",
            Self::RunToRun => "run-to-run CUB",
            Self::Memcpy => "memcpy",
            Self::Neighbour => "aligned",
            Self::NotDeterministic => "look-back",
        }
    }

    /// Whether the ratio is read as a percentage.
    const fn is_percent(self) -> bool {
        matches!(self, Self::Memcpy | Self::Neighbour | Self::NotDeterministic)
    }

    /// The ratio as a reader wants it.
    pub fn show(self, ratio: f64) -> String {
        if self.is_percent() { format!("{:.1} %", 100.0 * ratio) } else { format!("{ratio:.2} x") }
    }
}

const TIMES: &[Figure] = &[Figure::Cold, Figure::Stream, Figure::Graph];
const FLOATS: &[ElementType] = &[ElementType::F32, ElementType::F64];
const WIDE: &[ElementType] =
    &[ElementType::U32, ElementType::I32, ElementType::U64, ElementType::I64, ElementType::F32, ElementType::F64];
const EVERY_SIZE: (u64, u64) = (0, u64::MAX);

/// A target of aligned sums against CUB on an H100, which the others are variations of.
const SUMS: Target = Target {
    place: "",
    types: ElementType::NUMBERS,
    operators: &[Operator::Sum],
    bytes: EVERY_SIZE,
    arrays: Arrays::Aligned,
    figures: TIMES,
    yardstick: Yardstick::Cub,
    threshold: 1.0,
    stretch: None,
    gpu: "h100",
    decides: true,
};

const UP_TO_64_KIB: Target = Target { place: "<= 64 KiB", bytes: (0, 64 * KIB), ..SUMS };
const UP_TO_1_MIB: Target = Target { place: "256 KiB, 1 MiB", bytes: (256 * KIB, MIB), ..SUMS };
const AT_4_MIB: Target = Target { place: "4 MiB", bytes: (4 * MIB, 4 * MIB), stretch: Some(1.5), ..SUMS };
const AT_16_MIB: Target = Target { bytes: (16 * MIB, 16 * MIB), ..SUMS };
const OF_MEMCPY: Target = Target { yardstick: Yardstick::Memcpy, ..SUMS };
const FROM_1_GIB: Target = Target { place: ">= 1 GiB", bytes: (GIB, u64::MAX), ..SUMS };

/// All targets, in the order of the table.
pub const TARGETS: &[Target] = &[
    Target { figures: &[Figure::Graph], threshold: 1.4, ..UP_TO_64_KIB },
    Target { figures: &[Figure::Stream], threshold: 2.0, ..UP_TO_64_KIB },
    Target { figures: &[Figure::Cold], threshold: 1.4, ..UP_TO_64_KIB },
    Target { figures: &[Figure::Graph], threshold: 1.3, ..UP_TO_1_MIB },
    Target { figures: &[Figure::Stream], threshold: 1.8, ..UP_TO_1_MIB },
    Target { figures: &[Figure::Cold], threshold: 1.3, ..UP_TO_1_MIB },
    Target { figures: &[Figure::Graph], threshold: 1.3, ..AT_4_MIB },
    Target { figures: &[Figure::Cold, Figure::Stream], threshold: 1.15, ..AT_4_MIB },
    Target { place: "16 MiB, 4 or 8 bytes", types: WIDE, threshold: 1.15, stretch: Some(1.3), ..AT_16_MIB },
    Target { place: "16 MiB, u16", types: &[ElementType::U16], threshold: 1.5, ..AT_16_MIB },
    Target { place: "16 MiB, u8", types: &[ElementType::U8], threshold: 2.5, ..AT_16_MIB },
    Target { place: "64 MiB", bytes: (64 * MIB, 64 * MIB), threshold: 0.95, ..OF_MEMCPY },
    Target { place: "256 MiB", bytes: (256 * MIB, 256 * MIB), threshold: 0.98, ..OF_MEMCPY },
    Target { yardstick: Yardstick::Memcpy, threshold: 0.99, ..FROM_1_GIB },
    Target { place: "  so u8", types: &[ElementType::U8], threshold: 2.8, decides: false, ..FROM_1_GIB },
    Target { place: "  so u16", types: &[ElementType::U16], threshold: 1.6, decides: false, ..FROM_1_GIB },
    Target {
        place: "  so 4 bytes",
        types: &[ElementType::U32, ElementType::I32, ElementType::F32],
        threshold: 1.2,
        decides: false,
        ..FROM_1_GIB
    },
    Target {
        place: "  so 8 bytes",
        types: &[ElementType::U64, ElementType::I64, ElementType::F64],
        threshold: 1.1,
        decides: false,
        ..FROM_1_GIB
    },
    Target {
        place: "everywhere",
        operators: Operator::OF_NUMBERS,
        arrays: Arrays::Any,
        yardstick: Yardstick::NotSlower,
        ..SUMS
    },
    Target {
        place: ">= 1 GiB, H200",
        gpu: "h200",
        yardstick: Yardstick::Memcpy,
        threshold: 0.96,
        stretch: Some(0.98),
        ..FROM_1_GIB
    },
    Target {
        place: "any n, any offsets",
        operators: Operator::OF_NUMBERS,
        arrays: Arrays::Odd,
        yardstick: Yardstick::Neighbour,
        threshold: 1.0 / 1.03,
        ..SUMS
    },
    Target { place: "deterministic floats", types: FLOATS, yardstick: Yardstick::RunToRun, threshold: 1.15, ..SUMS },
    Target {
        place: "deterministic floats",
        types: FLOATS,
        yardstick: Yardstick::NotDeterministic,
        threshold: 1.0 / 1.02,
        ..SUMS
    },
    Target {
        place: "min, max, bitwise",
        types: &[ElementType::I32, ElementType::F32],
        operators: &[Operator::Min, Operator::Max, Operator::And, Operator::Or, Operator::Xor],
        yardstick: Yardstick::Memcpy,
        threshold: 0.98,
        ..FROM_1_GIB
    },
];

impl Target {
    /// What is asked for: "graph: 1.40 x CUB".
    pub fn demand(&self) -> String {
        let figures = match self.figures {
            figures if figures == TIMES => String::new(),
            figures => format!("{}: ", figures.iter().map(|figure| figure.name()).collect::<Vec<_>>().join(", ")),
        };
        match self.yardstick {
            Yardstick::NotSlower => format!("{figures}not slower than CUB"),
            yardstick => format!("{figures}{} {}", yardstick.show(self.threshold), yardstick.of()),
        }
    }

    /// Whether a row of our subject is one of the target's points. Every such row of the committed sweep has to be in a
    /// record, with all figures.
    pub(super) fn covers(&self, row: &SweepRow) -> bool {
        let bytes = input_bytes(row);
        let is_aligned = row.offsets.is_aligned() && bytes.is_multiple_of(16);
        self.types.contains(&row.element)
            && self.operators.contains(&row.operator)
            && (self.bytes.0..=self.bytes.1).contains(&bytes)
            && match self.arrays {
                Arrays::Aligned => is_aligned,
                Arrays::Odd => !is_aligned,
                Arrays::Any => true,
            }
    }
}

const fn input_bytes(row: &SweepRow) -> u64 {
    row.n.saturating_mul(row.element.bytes() as u64)
}
