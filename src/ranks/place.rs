//! Which rank this process is and where it finds rank 0, as the launcher says it in the environment.

use super::error::RankError;

/// A rank's place among others, and where rank 0 listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// From 0.
    pub rank: usize,
    /// Ranks of the group.
    pub size: usize,
    /// The rank among those of its host, which is its GPU.
    pub local_rank: usize,
    /// Host and port of rank 0, `gpu01:29531`.
    pub address: String,
}

/// Where rank 0 listens if nobody says so.
const PORT: u16 = 29_531;

/// What a launcher calls rank, size, rank on the host, and ranks on the host.
const LAUNCHERS: [[&str; 4]; 3] = [
    ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"],
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"],
    ["SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", ""],
];

impl Place {
    /// What torchrun, mpirun of Open MPI or srun has set, whichever comes first.
    ///
    /// `MASTER_ADDR` and `MASTER_PORT` say where rank 0 listens; without them it is the first host of the Slurm job, or this
    /// host where all ranks are on it. torchrun listens at `MASTER_PORT` itself, so that the next port is taken.
    ///
    /// # Errors
    /// When no launcher has set its variables, one of them is no number, or rank 0 is not to be found.
    pub fn from_environment() -> Result<Self, RankError> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, RankError> {
        let number = |name: &'static str| match variable(name) {
            None => Ok(None),
            Some(value) => match value.trim().parse::<usize>() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(RankError::Variable { name, value, expected: "a whole number" }),
            },
        };
        for [rank, size, local_rank, local_size] in LAUNCHERS {
            let (Some(rank_number), Some(size)) = (number(rank)?, number(size)?) else { continue };
            if rank_number >= size {
                let value = rank_number.to_string();
                return Err(RankError::Variable { name: rank, value, expected: "less than the number of ranks" });
            }
            let is_on_one_host = local_size.is_empty() || number(local_size)?.is_none_or(|local| local == size);
            let host = match variable("MASTER_ADDR") {
                Some(host) => host,
                None => match variable("SLURM_STEP_NODELIST").or_else(|| variable("SLURM_JOB_NODELIST")) {
                    Some(list) => first_host(&list),
                    None if is_on_one_host => String::from("127.0.0.1"),
                    None => return Err(RankError::NoAddress),
                },
            };
            let port = match number("MASTER_PORT")? {
                // Its agent listens there.
                Some(port) if variable("TORCHELASTIC_RUN_ID").is_some() => port + 1,
                Some(port) => port,
                // Jobs that share a host had better not meet.
                None => usize::from(PORT) + number("SLURM_JOB_ID")?.unwrap_or(0) % 1000,
            };
            let Ok(port) = u16::try_from(port) else {
                let value = port.to_string();
                return Err(RankError::Variable { name: "MASTER_PORT", value, expected: "a port, less than 65535" });
            };
            // In brackets an address of IPv6 is told from its port.
            let host = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host };
            let local_rank = number(local_rank)?.unwrap_or(rank_number);
            return Ok(Self { rank: rank_number, size, local_rank, address: format!("{host}:{port}") });
        }
        Err(RankError::NoLauncher)
    }
}

/// The first host of a list as Slurm writes it, `gpu[01-04,07],login`.
fn first_host(list: &str) -> String {
    let end = list.find([',', '[']).unwrap_or(list.len());
    let (name, rest) = list.split_at(end);
    match rest.strip_prefix('[') {
        Some(numbers) => {
            let number: String = numbers.chars().take_while(char::is_ascii_digit).collect();
            let behind = numbers.split_once(']').map_or("", |(_, behind)| behind);
            format!("{name}{number}{}", behind.split(',').next().unwrap_or(""))
        }
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(variables: &[(&str, &str)]) -> Result<Place, RankError> {
        Place::from_variables(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn found(rank: usize, size: usize, local_rank: usize, address: &str) -> Result<Place, RankError> {
        Ok(Place { rank, size, local_rank, address: address.to_owned() })
    }

    #[test]
    fn each_launcher_says_it_in_its_own_words() {
        let torchrun = [
            ("RANK", "3"),
            ("WORLD_SIZE", "8"),
            ("LOCAL_RANK", "1"),
            ("LOCAL_WORLD_SIZE", "2"),
            ("MASTER_ADDR", "gpu01"),
            ("MASTER_PORT", "29500"),
            ("TORCHELASTIC_RUN_ID", "none"),
        ];
        assert_eq!(place(&torchrun), found(3, 8, 1, "gpu01:29501"));
        assert_eq!(place(&torchrun[..6]), found(3, 8, 1, "gpu01:29500"));
        let mpirun = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ];
        assert_eq!(place(&mpirun), found(1, 2, 1, "127.0.0.1:29531"));
        let slurm = [
            ("SLURM_PROCID", "5"),
            ("SLURM_NTASKS", "16"),
            ("SLURM_LOCALID", "1"),
            ("SLURM_STEP_NODELIST", "gpu[01-04]"),
            ("SLURM_JOB_ID", "7002"),
        ];
        assert_eq!(place(&slurm), found(5, 16, 1, "gpu01:29533"));
        assert_eq!(place(&[("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "::1")]), found(0, 1, 0, "[::1]:29531"));
    }

    #[test]
    fn what_says_nothing_is_refused() {
        assert_eq!(place(&[("RANK", "0")]), Err(RankError::NoLauncher));
        let refused = |variables: &[(&str, &str)]| place(variables).expect_err("it means nothing").to_string();
        assert!(refused(&[("RANK", "two"), ("WORLD_SIZE", "2")]).starts_with("RANK=two: expected"));
        assert!(refused(&[("RANK", "2"), ("WORLD_SIZE", "2")]).starts_with("RANK=2: expected"));
        assert!(
            refused(&[("RANK", "1"), ("WORLD_SIZE", "2"), ("MASTER_PORT", "70000")]).starts_with("MASTER_PORT=70000")
        );
        let spread =
            [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "2")];
        assert_eq!(place(&spread), Err(RankError::NoAddress));
    }

    #[test]
    fn a_list_of_slurm_begins_with_its_first_host() {
        for (list, first) in [
            ("gpu[01-04,07],login", "gpu01"),
            ("a", "a"),
            ("a,b", "a"),
            ("n[3,5]-ib", "n3-ib"),
            ("x1[007-9],y", "x1007"),
        ] {
            assert_eq!(first_host(list), first);
        }
    }
}
