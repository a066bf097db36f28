//! The scan of a team of threads, one value each, a step at a time, from a run of it on the CPU device: whose value who took,
//! what was combined, and how the accesses to shared memory lie in its banks.

use crate::abi;
use crate::cpu::{
    Access, AccessKind, ExecutionError, LaneStep, LaunchSettings, MemoryBackend, SourceSite, Synchronization, launch_on,
};
use crate::lab::bounds::{Array, BoundsCheck};
use crate::strategy::Pattern;
use std::collections::{BTreeMap, BTreeSet};

/// Banks of shared memory, of a word of four bytes each: on every GPU that the kernels are for (CUDA C++ Programming Guide,
/// "Shared Memory").
const BANKS: usize = 32;
const WORD: usize = 4;

unsafe extern "C" {
    /// `cuda/host/team.cpp`
    fn lookback_scan_of_team(config: *const abi::lookback_config, launch: *const abi::lookback_launch);
}

/// A number that follows from n = 2^k: in words, and for a k.
pub type Formula = (&'static str, fn(u64) -> u64);

/// What the textbooks say of a pattern over n = 2^k values.
#[derive(Debug, Clone, Copy)]
pub struct Textbook {
    /// Whose.
    pub pattern: Pattern,
    /// Steps with an operator in them.
    pub steps: Formula,
    /// Applications of the operator.
    pub operators: Formula,
}

/// Kogge & Stone's, which three of the patterns apply.
const fn kogge_stone(pattern: Pattern) -> Textbook {
    Textbook { pattern, steps: ("log n", |k| k), operators: ("n log n - n + 1", |k| (k << k) - (1 << k) + 1) }
}

/// All patterns. The papers are those that `cuda/block` and docs/strategies.md name.
pub const TEXTBOOK: [Textbook; 6] = [
    kogge_stone(Pattern::Shuffle),
    kogge_stone(Pattern::HillisSteele),
    kogge_stone(Pattern::KoggeStone),
    Textbook { pattern: Pattern::Sklansky, steps: ("log n", |k| k), operators: ("n/2 log n", |k| k << k >> 1) },
    Textbook {
        pattern: Pattern::BrentKung,
        steps: ("2 log n - 1", |k| 2 * k - 1),
        operators: ("2n - 2 - log n", |k| (2 << k) - 2 - k),
    },
    Textbook { pattern: Pattern::Blelloch, steps: ("2 log n", |k| 2 * k), operators: ("2n - 2", |k| (2 << k) - 2) },
];

/// What a thread makes of what it has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The thread that does it.
    pub thread: u32,
    /// Places whose values it has taken. What it held itself is not among them.
    pub from: Vec<u32>,
    /// Where the result is.
    pub to: u32,
    /// Whether it is a combination; else a value is moved, or the identity set.
    pub is_combined: bool,
}

/// What threads do between two meetings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// By thread.
    pub nodes: Vec<Node>,
    /// How many words of one bank an access of a warp asks for at most: so many turns it takes.
    pub most_turns: u64,
}

impl Row {
    /// Threads that combine.
    pub fn at_work(&self) -> usize {
        self.nodes.iter().filter(|node| node.is_combined).count()
    }
}

/// Why there is no scan of a team.
#[derive(Debug, thiserror::Error)]
pub enum TeamError {
    /// The executor found a fault in it.
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    /// What came out is no scan.
    #[error("the scan by {pattern} of {threads} threads is not right")]
    Wrong {
        /// By which pattern.
        pattern: Pattern,
        /// Of how many threads.
        threads: u32,
    },
}

/// A scan of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamScan {
    /// By which pattern.
    pub pattern: Pattern,
    /// Of how many threads.
    pub threads: u32,
    /// What was done, meeting by meeting, where anything was.
    pub rows: Vec<Row>,
    /// Meetings of all threads of the warp or the block.
    pub meetings: u64,
    /// Accesses of warps to shared memory.
    pub accesses: u64,
    /// Turns that these took: one each, and one more for each further word of the same bank.
    pub turns: u64,
}

impl TeamScan {
    /// Runs the scan of `threads` values, a power of two from 32 to 1024, by shuffles of 32.
    ///
    /// # Errors
    /// When the executor finds a fault in it, or it is not right.
    ///
    /// # Panics
    /// When there is no such team.
    pub fn run(pattern: Pattern, threads: u32) -> Result<Self, TeamError> {
        let is_team = threads.is_power_of_two() && (32..=1024).contains(&threads);
        assert!(is_team && (threads == 32 || pattern != Pattern::Shuffle), "no team of {threads} threads by {pattern}");
        // So that no partial sum is another one.
        let input: Vec<u32> = (1..=threads).map(|index| index.wrapping_mul(0x9E37_79B1)).collect();
        let mut output = vec![0u32; threads as usize];
        let array = |name, address, writable| Array { name, address, bytes: threads as usize * WORD, writable };
        let arrays = vec![
            array("the input", input.as_ptr().addr(), false),
            array("the output", output.as_mut_ptr().addr(), true),
        ];
        let arguments = abi::lookback_launch {
            input: input.as_ptr().cast(),
            output: output.as_mut_ptr().cast(),
            n: u64::from(threads),
            ..abi::lookback_launch::default()
        };
        let config =
            abi::lookback_config { block_threads: threads, pattern: pattern as u32, ..abi::lookback_config::default() };
        let settings = LaunchSettings { tells_lanes: true, ..LaunchSettings::new(1, threads) };
        let mut looking = Looking::new(arrays, threads);
        // SAFETY: the kernel was compiled for this executor and takes these two structs; input and output have a value for
        // each thread of the one block, and stay where they are until the launch returns.
        unsafe { launch_on(&mut looking, lookback_scan_of_team, &config, &arguments, &settings) }?;
        let mut sum = 0u32;
        for (value, found) in input.iter().zip(&output) {
            if *found != sum {
                return Err(TeamError::Wrong { pattern, threads });
            }
            sum = sum.wrapping_add(*value);
        }
        Ok(looking.told(pattern, threads))
    }

    /// Steps in which anything is combined.
    pub fn steps(&self) -> usize {
        self.rows.iter().filter(|row| row.at_work() > 0).count()
    }

    /// Applications of the operator.
    pub fn operators(&self) -> usize {
        self.rows.iter().map(Row::at_work).sum()
    }

    /// How many turns an access takes at most.
    pub fn most_turns(&self) -> u64 {
        self.rows.iter().map(|row| row.most_turns).max().unwrap_or(0)
    }
}

/// An access of a warp: how many meetings came before it, of which warp, by which line, whether it stores, and how often the warp has
/// come to that line since the last meeting.
type Instruction = (usize, u32, Option<SourceSite>, bool, usize);

/// Memory whose accesses are written down.
struct Looking {
    inner: BoundsCheck,
    threads: u32,
    /// Where shared memory begins.
    shared: usize,
    meetings: usize,
    rows: BTreeMap<usize, Row>,
    lanes: Vec<Lane>,
    /// What each place holds.
    held: BTreeMap<u32, Vec<u8>>,
    /// The words that lanes ask for at once.
    instructions: BTreeMap<Instruction, BTreeSet<usize>>,
}

/// What is known of a thread.
#[derive(Debug, Clone, Default)]
struct Lane {
    /// Places that it has taken a value of since the last meeting, and the values.
    taken: Vec<(u32, Vec<u8>)>,
    /// What it has combined and not stored: which row and node.
    combined: Option<(usize, usize)>,
    /// How often it has come to a line, since the last meeting.
    visits: BTreeMap<(Option<SourceSite>, bool), usize>,
}

impl Looking {
    fn new(arrays: Vec<Array>, threads: u32) -> Self {
        Self {
            inner: BoundsCheck::new(arrays),
            threads,
            shared: 0,
            meetings: 0,
            rows: BTreeMap::new(),
            lanes: vec![Lane::default(); threads as usize],
            held: BTreeMap::new(),
            instructions: BTreeMap::new(),
        }
    }

    /// The place of an address: patterns with two buffers have two places for each thread, which stand for one.
    fn place(&self, access: &Access) -> u32 {
        ((access.address - self.shared) / WORD) as u32 % self.threads
    }

    /// Notes that a warp asks for a word, and returns the thread.
    fn asked(&mut self, access: &Access) -> usize {
        let (site, is_store, thread) = (access.site(), access.kind.is_store(), access.thread as usize);
        let visit = self.lanes[thread].visits.entry((site, is_store)).or_default();
        let instruction = (self.meetings, access.thread / abi::LOOKBACK_WARP_LANES, site, is_store, *visit);
        *visit += 1;
        self.instructions.entry(instruction).or_default().insert(access.address / WORD);
        thread
    }

    fn add(&mut self, node: Node) -> (usize, usize) {
        let nodes = &mut self.rows.entry(self.meetings).or_default().nodes;
        nodes.push(node);
        (self.meetings, nodes.len() - 1)
    }

    fn told(mut self, pattern: Pattern, threads: u32) -> TeamScan {
        let turns = |words: &BTreeSet<usize>| {
            let mut banks = [0u64; BANKS];
            words.iter().for_each(|word| banks[word % BANKS] += 1);
            banks.into_iter().max().unwrap_or(0)
        };
        let mut all = 0;
        for ((meeting, ..), words) in &self.instructions {
            let turns = turns(words);
            all += turns;
            if let Some(row) = self.rows.get_mut(meeting) {
                row.most_turns = row.most_turns.max(turns);
            }
        }
        let accesses = self.instructions.len() as u64;
        let mut rows: Vec<Row> = self.rows.into_values().collect();
        // Who comes last to a meeting goes on first.
        rows.iter_mut().for_each(|row| row.nodes.sort_by_key(|node| (node.thread, node.is_combined)));
        TeamScan { pattern, threads, rows, meetings: self.meetings as u64, accesses, turns: all }
    }
}

impl MemoryBackend for Looking {
    fn load(&mut self, access: &Access, value: &mut [u8]) -> Result<(), String> {
        self.inner.load(access, value)?;
        if access.kind == AccessKind::SharedLoad {
            let (place, thread) = (self.place(access), self.asked(access));
            self.lanes[thread].taken.push((place, value.to_vec()));
        }
        Ok(())
    }

    fn store(&mut self, access: &Access, value: &[u8]) -> Result<(), String> {
        self.inner.store(access, value)?;
        if access.kind != AccessKind::SharedStore {
            return Ok(());
        }
        let (to, thread) = (self.place(access), self.asked(access));
        let before = self.held.insert(to, value.to_vec());
        if let Some((row, node)) = self.lanes[thread].combined.take() {
            if let Some(row) = self.rows.get_mut(&row) {
                row.nodes[node].to = to;
            }
        } else if before.is_some_and(|before| before != value) {
            // A value that goes on as it is, or nobody's: the identity.
            let from = self.lanes[thread].taken.iter().filter(|(_, taken)| taken == value).map(|&(place, _)| place);
            let from: Vec<u32> = from.take(1).collect();
            self.add(Node { thread: access.thread, from, to, is_combined: false });
        }
        Ok(())
    }

    fn fetch_add(&mut self, access: &Access, value: u32) -> Result<u32, String> {
        self.inner.fetch_add(access, value)
    }

    fn lane_step(&mut self, _block: u64, thread: u32, step: LaneStep) {
        let lane = &mut self.lanes[thread as usize];
        match step {
            LaneStep::Took(other) => lane.taken = vec![(other, Vec::new())],
            LaneStep::Applied => {
                let from = std::mem::take(&mut lane.taken).into_iter().map(|(place, _)| place).collect();
                let combined = self.add(Node { thread, from, to: thread, is_combined: true });
                self.lanes[thread as usize].combined = Some(combined);
            }
        }
    }

    fn synchronize(&mut self, event: Synchronization) -> Result<(), String> {
        self.inner.synchronize(event)?;
        match event {
            Synchronization::SharedStorage { address, .. } => self.shared = address,
            Synchronization::BlockBarrier { .. } | Synchronization::Warp { .. } => {
                self.meetings += 1;
                for lane in &mut self.lanes {
                    lane.taken.clear();
                    lane.visits.clear();
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_what_the_textbooks_say() {
        for Textbook { pattern, steps, operators } in TEXTBOOK {
            for log in 5..=10 {
                if pattern == Pattern::Shuffle && log > 5 {
                    continue;
                }
                let scan = TeamScan::run(pattern, 1 << log).unwrap();
                let found = (scan.steps() as u64, scan.operators() as u64);
                assert_eq!(found, (steps.1(log), operators.1(log)), "{pattern} of 2^{log}");
            }
        }
        assert_eq!(TEXTBOOK.len(), Pattern::ALL.len());
    }

    #[test]
    fn a_node_takes_what_the_paper_draws() {
        let scan = TeamScan::run(Pattern::KoggeStone, 32).unwrap();
        for (step, row) in scan.rows.iter().enumerate() {
            let distance = 1 << step;
            let expected =
                (distance..32).map(|to| Node { thread: to, from: vec![to - distance], to, is_combined: true });
            assert_eq!(row.nodes, expected.collect::<Vec<_>>(), "step {step}");
        }
        assert_eq!(TeamScan::run(Pattern::Shuffle, 32).unwrap().rows, scan_without_banks(&scan));
        let blelloch = TeamScan::run(Pattern::Blelloch, 32).unwrap();
        let root = blelloch.rows.iter().position(|row| row.at_work() == 0).unwrap();
        assert_eq!(blelloch.rows[root].nodes, [Node { thread: 0, from: vec![], to: 31, is_combined: false }]);
        let down = &blelloch.rows[root + 1].nodes;
        let moved = Node { thread: 0, from: vec![31], to: 15, is_combined: false };
        let combined = Node { thread: 0, from: vec![15, 31], to: 31, is_combined: true };
        assert_eq!(*down, [moved, combined]);
    }

    fn scan_without_banks(scan: &TeamScan) -> Vec<Row> {
        scan.rows.iter().map(|row| Row { most_turns: 0, ..row.clone() }).collect()
    }

    #[test]
    fn trees_in_place_meet_themselves_in_the_banks() {
        let turns = |pattern| TeamScan::run(pattern, 256).unwrap().most_turns();
        assert_eq!([Pattern::HillisSteele, Pattern::KoggeStone, Pattern::Sklansky].map(turns), [1; 3]);
        // Places 31, 63, … lie in one bank, and eight threads ask for them at once.
        assert_eq!([Pattern::BrentKung, Pattern::Blelloch].map(turns), [8; 2]);
    }
}
