//! What the program says, as data.

use super::job::ThreadSanitizerError;
use std::collections::BTreeMap;
use std::fmt;

/// How a process that ran jobs ends: what the first job showed that is not clean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// No schedule showed anything.
    Clean(Counts),
    /// ThreadSanitizer reported a data race.
    Race(Box<Race>),
    /// An element is not the scan's: the first such `index`, in the launch, from 0, of the schedule of `seed`, here
    /// and below.
    WrongResult { seed: u64, launch: u64, index: u64 },
    /// Everybody waits and nobody stores: a tile that waits, if one said so, and the tile that it waits for.
    LostProgress { seed: u64, launch: u64, waiting: Option<u64>, missing: Option<u64> },
    /// A fault of a kernel that the program saw itself: a barrier that not all reach, a misaligned access.
    Fault { seed: u64, launch: u64, what: String },
    /// The program crashed or did not end.
    Other(String),
}

impl Ending {
    /// Whether nothing was found.
    pub const fn is_clean(&self) -> bool {
        matches!(self, Self::Clean(_))
    }

    /// The schedule that showed it, if one did and could say so.
    pub fn seed(&self) -> Option<u64> {
        match self {
            Self::Race(race) => Some(race.seed),
            Self::WrongResult { seed, .. } | Self::LostProgress { seed, .. } | Self::Fault { seed, .. } => Some(*seed),
            Self::Clean(_) | Self::Other(_) => None,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clean(counts) => write!(formatter, "clean over {} schedules", counts.schedules),
            Self::Race(race) => race.fmt(formatter),
            Self::WrongResult { seed, launch, index } => {
                write!(formatter, "wrong at element {index} (seed {seed}, launch {launch})")
            }
            Self::LostProgress { seed, launch, waiting: Some(waiting), missing: Some(missing) } => {
                write!(formatter, "tile {waiting} waits for tile {missing} in vain (seed {seed}, launch {launch})")
            }
            Self::LostProgress { seed, launch, .. } => {
                write!(formatter, "progress lost (seed {seed}, launch {launch})")
            }
            Self::Fault { seed, launch, what } => write!(formatter, "{what} (seed {seed}, launch {launch})"),
            Self::Other(what) => formatter.write_str(what),
        }
    }
}

/// What a clean job did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Schedules.
    pub schedules: u64,
    /// Blocks that ran.
    pub blocks: u64,
    /// Switches from thread to thread.
    pub switches: u64,
    /// Accesses of the protocol between blocks.
    pub protocol_accesses: u64,
    /// Fibers, which all blocks shared.
    pub fibers: u64,
}

/// The first race that ThreadSanitizer reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Race {
    /// The schedule.
    pub seed: u64,
    /// Which launch of it, from 0.
    pub launch: u64,
    /// The block of the later access.
    pub block: u64,
    /// Its thread.
    pub thread: u64,
    /// The later access.
    pub access: AccessSite,
    /// The earlier one, by another thread.
    pub earlier: AccessSite,
    /// ThreadSanitizer's own words.
    pub text: String,
}

impl fmt::Display for Race {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} by block {} thread {} races with {} (seed {}, launch {})",
            self.access, self.block, self.thread, self.earlier, self.seed, self.launch
        )
    }
}

/// One of the two accesses of a race.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessSite {
    /// "read", "write", "atomic read" or "atomic write".
    pub kind: String,
    /// The line of the kernel, `descriptor.cuh:148`, if the sanitizer could tell.
    pub site: Option<String>,
    /// Whether it is none of a kernel: the mark on memory that no kernel may touch.
    pub is_forbidden_memory: bool,
}

impl fmt::Display for AccessSite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_forbidden_memory {
            return formatter.write_str("the end of the arrays that it may touch");
        }
        write!(formatter, "{} at {}", self.kind, self.site.as_deref().unwrap_or("an unknown line"))
    }
}

/// The numbers behind the first word of an ending.
struct Fields<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Fields<'a> {
    fn of(line: &'a str) -> Self {
        Self(line.split_whitespace().filter_map(|word| word.split_once('=')).collect())
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.0.get(key)?.parse().ok()
    }
}

/// The ending that the program wrote, or its exit status where it wrote none; and the place of the job that it
/// is about.
pub(super) fn parse(output: &str, errors: &str, status: &str) -> Result<(Ending, usize), ThreadSanitizerError> {
    let is_place = |line: &&str| line.starts_with("job ");
    let place = output.lines().filter(is_place).count().saturating_sub(1);
    let line = output.lines().find(|line| !line.trim().is_empty() && !is_place(line)).unwrap_or_default();
    ending(line, errors, status).map(|ending| (ending, place))
}

fn ending(line: &str, errors: &str, status: &str) -> Result<Ending, ThreadSanitizerError> {
    let no_answer = || ThreadSanitizerError::Answer { answer: format!("{line} {errors}").trim().to_owned() };
    let word = line.split_whitespace().next().unwrap_or_default();
    let fields = Fields::of(line);
    let read = || -> Option<Ending> {
        let number = |key| fields.number(key);
        Some(match word {
            "clean" => Ending::Clean(Counts {
                schedules: number("schedules")?,
                blocks: number("blocks")?,
                switches: number("switches")?,
                protocol_accesses: number("protocol")?,
                fibers: number("fibers")?,
            }),
            "race" => {
                let (access, earlier) = sites(errors)?;
                Ending::Race(Box::new(Race {
                    seed: number("seed")?,
                    launch: number("launch")?,
                    block: number("block")?,
                    thread: number("thread")?,
                    access,
                    earlier,
                    text: errors.to_owned(),
                }))
            }
            "wrong" => {
                Ending::WrongResult { seed: number("seed")?, launch: number("launch")?, index: number("index")? }
            }
            "lost-progress" => Ending::LostProgress {
                seed: number("seed")?,
                launch: number("launch")?,
                waiting: number("waiting"),
                missing: number("missing"),
            },
            "fault" => {
                // The word, the seed and the launch, and then what happened.
                let what = line.splitn(4, ' ').nth(3)?.trim().to_owned();
                Ending::Fault { seed: number("seed")?, launch: number("launch")?, what }
            }
            _ => return None,
        })
    };
    if let Some(ending) = read() {
        return Ok(ending);
    }
    if word == "asleep" {
        return Err(ThreadSanitizerError::Asleep);
    }
    if let Some(why) = line.strip_prefix("refused") {
        return Err(ThreadSanitizerError::NotCovered(why.trim().to_owned()));
    }
    if let Some(crash) = errors.lines().find_map(|line| line.split_once("ERROR: ThreadSanitizer: ")) {
        return Ok(Ending::Other(format!("the kernels crashed: {}", crash.1)));
    }
    if !line.is_empty() || status.is_empty() {
        return Err(no_answer());
    }
    Ok(Ending::Other(status.to_owned()))
}

/// The two accesses of the first report.
fn sites(report: &str) -> Option<(AccessSite, AccessSite)> {
    let mut found: Vec<AccessSite> = Vec::new();
    let mut is_open = false;
    for line in report.lines() {
        let words = line.trim();
        if words.contains(" of size ") && words.contains(" at 0x") {
            let kind = words.split(" of size ").next()?.to_lowercase();
            let kind = kind.strip_prefix("previous ").unwrap_or(&kind).to_owned();
            found.push(AccessSite { kind, site: None, is_forbidden_memory: false });
            is_open = true;
        } else if words.is_empty() {
            is_open = false;
        } else if is_open && words.starts_with('#') {
            let access = found.last_mut()?;
            access.is_forbidden_memory |= words.contains(" write_forbidden");
            if access.site.is_none() {
                access.site = kernel_line(words);
            }
        }
    }
    let mut found = found.into_iter();
    Some((found.next()?, found.next()?))
}

/// `descriptor.cuh:148` of a frame in `…/cuda/host/../scan/../descriptor.cuh:148 (program+0x1)`; nothing where the
/// frame is not a kernel's.
fn kernel_line(frame: &str) -> Option<String> {
    let (place, _module) = frame.rsplit_once(" (")?;
    let place = &place[place.rfind("cuda/")? + "cuda/".len()..];
    let mut parts = place.split(':');
    let (path, line) = (parts.next()?, parts.next()?);
    let mut folders: Vec<&str> = Vec::new();
    for part in path.split('/') {
        if part == ".." {
            folders.pop();
        } else {
            folders.push(part);
        }
    }
    (folders.first() != Some(&"host")).then(|| format!("{}:{line}", folders.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "==================
WARNING: ThreadSanitizer: data race (pid=1)
  Read of size 4 at 0x7fc094931060 by thread T52:
    #0 unsigned int lookback::memory::load_payload<unsigned int>(unsigned int const*) /tmp/x/cuda/host/../scan/../host/memory.h:314 (prog+0x1)
    #1 lookback::split<unsigned int>::read(unsigned long long) const /tmp/x/cuda/host/../scan/../descriptor.cuh:190 (prog+0x2)

  Previous atomic write of size 4 at 0x7fc094931060 by thread T135:
    #0 lookback::split<unsigned int>::publish(unsigned long long) const /tmp/x/cuda/host/../scan/lookback.cuh:148:7 (prog+0x3)

  Thread T52 (tid=0, running) created by main thread at:
    #0 make_fibers /tmp/x/cuda/host/thread_sanitizer.cpp:790 (prog+0x4)
";

    #[test]
    fn a_report_becomes_one_line() {
        let output = "job 0\njob 1\nrace seed=3 launch=1 block=2 thread=0\n";
        let (ending, place) = parse(output, REPORT, "exit code 66").expect("an answer");
        assert_eq!(place, 1);
        assert_eq!(
            ending.to_string(),
            "read at descriptor.cuh:190 by block 2 thread 0 races with atomic write at scan/lookback.cuh:148 \
             (seed 3, launch 1)"
        );
    }

    #[test]
    fn every_answer_is_understood() {
        let parse = |output: &str, errors: &str, status: &str| parse(output, errors, status).map(|(ending, _)| ending);
        assert!(parse("clean schedules=1 blocks=2 switches=3 protocol=4 fibers=5\n", "", "").expect("ok").is_clean());
        assert_eq!(
            parse("wrong seed=1 launch=0 index=7\n", "", "").expect("ok"),
            Ending::WrongResult { seed: 1, launch: 0, index: 7 }
        );
        assert_eq!(
            parse("lost-progress seed=1 launch=0 waiting=-1 missing=-1\n", "", "").expect("ok"),
            Ending::LostProgress { seed: 1, launch: 0, waiting: None, missing: None }
        );
        assert_eq!(
            parse("fault seed=1 launch=0 deadlock: 3 of 4 blocks ended\n", "", "").expect("ok").to_string(),
            "deadlock: 3 of 4 blocks ended (seed 1, launch 0)"
        );
        assert!(matches!(parse("refused why\n", "", ""), Err(ThreadSanitizerError::NotCovered(_))));
        assert_eq!(
            parse("", "==1==ERROR: ThreadSanitizer: SEGV on unknown address\n", "exit code 66")
                .expect("ok")
                .to_string(),
            "the kernels crashed: SEGV on unknown address"
        );
        assert_eq!(parse("", "", "no verdict in 2 s").expect("ok").to_string(), "no verdict in 2 s");
        assert!(matches!(parse("asleep\n", "", ""), Err(ThreadSanitizerError::Asleep)));
        assert!(matches!(parse("strange\n", "", ""), Err(ThreadSanitizerError::Answer { .. })));
    }
}
