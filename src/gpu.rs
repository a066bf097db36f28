//! The architecture of a GPU, its limits, and what of a GPU decides about tuning.

use std::fmt;

/// Compute capability of a GPU: what a cubin is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Architecture {
    /// For example the 9 of 9.0.
    pub major: i32,
    /// For example the 0 of 9.0.
    pub minor: i32,
}

impl Architecture {
    /// The first with clusters, bulk copies and programmatic dependent launch.
    pub const HOPPER: Self = Self { major: 9, minor: 0 };

    /// The architectures that every kernel is checked for: Turing, Ampere, Ada, Hopper, two of Blackwell.
    pub const CHECKED: [Self; 6] = [
        Self { major: 7, minor: 5 },
        Self { major: 8, minor: 0 },
        Self { major: 8, minor: 9 },
        Self::HOPPER,
        Self { major: 10, minor: 0 },
        Self { major: 12, minor: 0 },
    ];

    /// A compute capability in words, "9.0"; `None` where these are no such words.
    pub fn parse(compute_capability: &str) -> Option<Self> {
        let (major, minor) = compute_capability.split_once('.')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// The number NVRTC uses: 90 for 9.0.
    pub const fn number(self) -> i32 {
        self.major * 10 + self.minor
    }

    /// Whether a launch may start before the launches before it are over and wait for them by itself (CUDA C++
    /// Programming Guide, "Programmatic Dependent Launch and Synchronization").
    pub const fn has_programmatic_launch(self) -> bool {
        self.major >= Self::HOPPER.major
    }

    /// Whether blocks of a launch may form a cluster.
    pub const fn has_clusters(self) -> bool {
        self.major >= Self::HOPPER.major
    }

    /// Shared memory that a block may have if its launch asks for it, in bytes; the least that any architecture has
    /// where this one is not known (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
    pub const fn shared_bytes(self) -> u64 {
        let kibibytes = match (self.major, self.minor) {
            (7, 0 | 2) => 96,
            (7, 5) => 64,
            (8, 0 | 7) => 163,
            (9..=11, _) => 227,
            (8, _) | (12, _) => 99,
            _ => 48,
        };
        kibibytes * 1024
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&format!("sm_{}", self.number()))
    }
}

/// What of a GPU decides about the choice of `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gpu {
    /// Its compute capability.
    pub architecture: Architecture,
    /// Multiprocessors.
    pub multiprocessors: u32,
}

impl Gpu {
    /// An H100, for which the CPU device stands.
    pub const H100: Self = Self { architecture: Architecture::HOPPER, multiprocessors: 132 };

    /// A GPU by its compute capability in words, "9.0"; `None` where these are no such words.
    pub fn parse(compute_capability: &str, multiprocessors: u64) -> Option<Self> {
        let multiprocessors = u32::try_from(multiprocessors).ok()?;
        Some(Self { architecture: Architecture::parse(compute_capability)?, multiprocessors })
    }
}

impl Default for Gpu {
    fn default() -> Self {
        Self::H100
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "compute capability {}.{}", self.architecture.major, self.architecture.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::Gpu;

    #[test]
    fn the_capability_is_read_from_words() {
        assert_eq!(Gpu::parse("9.0", 132), Some(Gpu::H100));
        for words in ["", "9", "nine.zero", "9.0.1"] {
            assert_eq!(Gpu::parse(words, 132), None, "{words}");
        }
    }
}
