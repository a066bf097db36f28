//! Why ranks did not come to a common end.

use std::fmt;
use std::time::Duration;

/// How a rank was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    /// It did not join in time.
    Absent(Duration),
    /// Its connection ended: the process is gone.
    Died,
    /// Its process was not heard of for so long: it is stopped, or its machine is gone.
    Silent(Duration),
    /// Its process is there, and did not take its part in time.
    Late(Duration),
    /// It had left the group when its part was needed.
    Left,
    /// It said itself what went wrong.
    Failed(String),
}

impl fmt::Display for Loss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(limit) => write!(formatter, "did not come within {} s", limit.as_secs_f64()),
            Self::Died => formatter.write_str("died: its connection ended"),
            Self::Silent(limit) => write!(formatter, "was not heard of for {} s", limit.as_secs_f64()),
            Self::Late(limit) => write!(formatter, "did not take its part within {} s", limit.as_secs_f64()),
            Self::Left => formatter.write_str("has left the group"),
            Self::Failed(why) => write!(formatter, "failed: {why}"),
        }
    }
}

/// What keeps ranks from coming together, or from a common end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RankError {
    /// A rank is lost, and so is what all were to do together.
    #[error("rank {rank} of {size} {loss}")]
    Lost {
        /// Which.
        rank: usize,
        /// Ranks of the group.
        size: usize,
        /// How.
        loss: Loss,
    },
    /// Nobody has said which rank this process is.
    #[error(
        "no launcher has said which rank this process is: neither RANK and WORLD_SIZE (torchrun), nor OMPI_COMM_WORLD_RANK \
         and OMPI_COMM_WORLD_SIZE (mpirun), nor SLURM_PROCID and SLURM_NTASKS (srun) are set; start it by one of them, or set \
         the first two and MASTER_ADDR"
    )]
    NoLauncher,
    /// A variable of the environment that means nothing.
    #[error("{name}={value}: expected {expected}")]
    Variable {
        /// Its name.
        name: &'static str,
        /// What it says.
        value: String,
        /// What it should say.
        expected: &'static str,
    },
    /// Ranks of several hosts, and no address of rank 0.
    #[error(
        "the ranks are on several hosts, and nothing says where rank 0 is: set MASTER_ADDR to its host for all of them"
    )]
    NoAddress,
    /// The place where the others look for rank 0 cannot be had.
    #[error("rank 0 cannot listen at {address} ({reason}); set MASTER_PORT to another port, the same for all ranks")]
    Listen {
        /// Host and port.
        address: String,
        /// What the operating system says.
        reason: String,
    },
    /// What the ranks exchange is more than a message holds.
    #[error("ranks exchange {most} bytes at most, of all together, not {bytes}")]
    Parts {
        /// As many are asked for.
        bytes: usize,
        /// As many are possible.
        most: usize,
    },
    /// An array cannot be dealt in such chunks.
    #[error("an array is dealt in chunks of one element or more, not of none")]
    EmptyChunk,
    /// A rank that deals otherwise.
    #[error(
        "rank {rank} deals otherwise than rank {this}: give all ranks the same deal, definition, mode and configuration"
    )]
    OtherDeal {
        /// Which.
        rank: usize,
        /// The one that says so.
        this: usize,
    },
    /// Ranks without memory in common.
    #[error(
        "rank {rank} is a process of its own, whose memory the others do not reach: deal to CPU devices of one process \
         (`Group::in_process`, `--ranks 4`)"
    )]
    OtherProcess {
        /// The rank that says so.
        rank: usize,
    },
    /// Less than one rank, or more than a group has room for.
    #[error("a group has 1 to {most} ranks, not {size}")]
    Size {
        /// As many were asked for.
        size: usize,
        /// As many are possible.
        most: usize,
    },
}
