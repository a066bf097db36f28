//! The ways in which ranks share a scan.

use crate::names::named;

named! {
    /// How a rank comes by what stands left of its shard.
    pub enum Manner as "manner" {
        /// Totals are exchanged before the scan, for which every shard is read twice.
        Contiguous = "contiguous",
        /// Totals are exchanged behind the scan, and whoever reads adds what is missing.
        Deferred = "deferred",
        /// Tiles are dealt in turn, and their kernels meet: every tile is read once, and nothing is missing.
        Cyclic = "cyclic",
    }
}

impl Manner {
    /// How often each element is read.
    pub const fn readings(self) -> u32 {
        match self {
            Self::Contiguous => 2,
            Self::Deferred | Self::Cyclic => 1,
        }
    }
}
