//! Copy kernels: how near any kernel comes to the driver's copy, `cuda/copies.cu`. A scan is a kernel, and what no copy kernel reaches
//! it need not reach either.

use std::fmt;

/// A kernel that copies whole words of 16 bytes, and how it is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyKernel {
    /// Threads of a block.
    pub threads: u32,
    /// What a block does.
    pub manner: Manner,
}

/// What a block of a copy kernel does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// One tile, so many words of 16 bytes a thread.
    Words(u32),
    /// Tiles in turn through a ring of stages in shared memory, which the copy engine fills; from compute capability 9.0 on. One warp
    /// lets the engine store, too; more warps store 16 bytes a lane.
    Ring {
        /// Bytes of a tile, a multiple of 16.
        tile_bytes: u32,
        /// Tiles that the ring has room for.
        stages: u32,
        /// Blocks of the grid by the multiprocessors of the GPU.
        blocks_per_multiprocessor: u32,
    },
}

impl CopyKernel {
    const fn ring(threads: u32, tile_bytes: u32, stages: u32, blocks_per_multiprocessor: u32) -> Self {
        Self { threads, manner: Manner::Ring { tile_bytes, stages, blocks_per_multiprocessor } }
    }

    /// Name of its function in `cuda/copies.cu`.
    pub fn function(&self) -> String {
        match self.manner {
            Manner::Words(words) => format!("copy_words_{words}x{}", self.threads),
            Manner::Ring { .. } if self.threads == 32 => String::from("copy_ring"),
            Manner::Ring { .. } => format!("copy_ring_{}", self.threads),
        }
    }

    /// Bytes of shared memory that a block asks for.
    pub const fn shared_bytes(&self) -> u32 {
        match self.manner {
            Manner::Words(_) => 0,
            Manner::Ring { tile_bytes, stages, .. } => tile_bytes * stages,
        }
    }

    /// Blocks that copy so many bytes, and what the kernel is told behind their number.
    pub fn launch(&self, bytes: u64, multiprocessors: u32) -> (u64, Vec<u64>) {
        match self.manner {
            Manner::Words(words) => (bytes.div_ceil(u64::from(self.threads) * u64::from(words) * 16), Vec::new()),
            Manner::Ring { tile_bytes, stages, blocks_per_multiprocessor } => (
                u64::from(multiprocessors) * u64::from(blocks_per_multiprocessor),
                vec![u64::from(tile_bytes), u64::from(stages)],
            ),
        }
    }
}

/// "copy-8x256": words a thread, threads. "copy-ring-4096x32x1": bytes of a tile, stages, blocks a multiprocessor; behind them
/// the threads, where they store.
impl fmt::Display for CopyKernel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.manner {
            Manner::Words(words) => write!(formatter, "copy-{words}x{}", self.threads),
            Manner::Ring { tile_bytes, stages, blocks_per_multiprocessor } => {
                write!(formatter, "copy-ring-{tile_bytes}x{stages}x{blocks_per_multiprocessor}")?;
                if self.threads == 32 { Ok(()) } else { write!(formatter, "-{}", self.threads) }
            }
        }
    }
}

/// All of them, beside the copy of 4 words a thread by 256 threads that stands at every point.
pub const COPY_KERNELS: &[CopyKernel] = &[
    CopyKernel { threads: 256, manner: Manner::Words(8) },
    CopyKernel { threads: 512, manner: Manner::Words(4) },
    CopyKernel::ring(32, 4096, 32, 1),
    CopyKernel::ring(32, 4096, 16, 1),
    CopyKernel::ring(32, 4096, 27, 2),
    CopyKernel::ring(32, 4096, 13, 2),
    CopyKernel::ring(32, 4096, 13, 4),
    CopyKernel::ring(32, 4096, 6, 4),
    CopyKernel::ring(32, 8192, 27, 1),
    CopyKernel::ring(32, 8192, 13, 1),
    CopyKernel::ring(32, 8192, 13, 2),
    CopyKernel::ring(32, 8192, 6, 2),
    CopyKernel::ring(32, 8192, 6, 4),
    CopyKernel::ring(32, 16384, 13, 1),
    CopyKernel::ring(32, 16384, 6, 1),
    CopyKernel::ring(32, 16384, 6, 2),
    CopyKernel::ring(32, 16384, 3, 4),
    CopyKernel::ring(32, 32768, 6, 1),
    CopyKernel::ring(32, 32768, 3, 2),
    CopyKernel::ring(288, 8192, 27, 1),
    CopyKernel::ring(288, 8192, 13, 2),
    CopyKernel::ring(288, 16384, 13, 1),
    CopyKernel::ring(288, 16384, 6, 2),
    CopyKernel::ring(288, 32768, 6, 1),
    CopyKernel::ring(288, 32768, 3, 2),
    CopyKernel::ring(544, 8192, 27, 1),
    CopyKernel::ring(544, 8192, 13, 2),
    CopyKernel::ring(544, 16384, 13, 1),
    CopyKernel::ring(544, 16384, 6, 2),
    CopyKernel::ring(544, 32768, 6, 1),
    CopyKernel::ring(544, 32768, 3, 2),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_has_a_name_of_its_own_that_marks_it_as_a_copy_and_a_block_has_room_for_its_ring() {
        let names: HashSet<String> = COPY_KERNELS.iter().map(CopyKernel::to_string).collect();
        assert_eq!(names.len(), COPY_KERNELS.len());
        assert!(names.iter().all(|name| name.starts_with("copy-")), "{names:?}");
        for kernel in COPY_KERNELS {
            let blocks = match kernel.manner {
                Manner::Words(_) => continue,
                Manner::Ring { stages, blocks_per_multiprocessor, .. } => {
                    // As many as the barriers of `cuda/copies.cu`.
                    assert!((2..=32).contains(&stages), "{kernel}");
                    blocks_per_multiprocessor
                }
            };
            assert!(kernel.shared_bytes() * blocks <= 220 << 10, "{kernel}");
        }
    }

    #[test]
    fn tiles_of_words_cover_all_bytes_and_rings_are_one_wave() {
        let [words, ring] = [COPY_KERNELS[0], COPY_KERNELS[2]];
        assert_eq!(words.launch(8 * 256 * 16 + 16, 132), (2, vec![]));
        assert_eq!(ring.launch(1 << 30, 132), (132, vec![4096, 32]));
        assert_eq!(ring.to_string(), "copy-ring-4096x32x1");
    }
}
