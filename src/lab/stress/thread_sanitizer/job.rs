//! What the program is asked to run, and why it may not.

use crate::abi;
use crate::cpu::BlockOrder;
use crate::element::{ElementType, Instance, Operator};
use crate::lab::host_compiler::HostCompilerError;
use crate::lab::stress::{Case, Disturbance, Mutant, Need, WorkspaceStart, mutant_number};
use crate::strategy::plan::{Place, Plan, ScanRequest, Step};
use crate::strategy::ring::Ring;
use crate::strategy::{Blocks, ConfigError, Descriptor, Mode, ScanConfig, Strategy};
use std::fmt::Write as _;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ThreadSanitizerError {
    /// No program.
    #[error(transparent)]
    Compiler(#[from] HostCompilerError),
    /// A compiler without the sanitizer's library.
    #[error(
        "'{compiler}' makes no program with -fsanitize=thread; install its library (Debian and Ubuntu: libtsan2 comes \
         with g++, libclang-rt-dev for clang; Fedora: libtsan), or set CXX to another compiler: {output}"
    )]
    NoLibrary { compiler: String, output: String },
    /// ThreadSanitizer does not start here.
    #[error(
        "ThreadSanitizer does not run on this machine, neither as it is nor without address space randomisation \
         (setarch -R; elsewhere: sysctl vm.mmap_rnd_bits=28): {output}"
    )]
    CannotRun { output: String },
    /// The program could not be started, written to or waited for.
    #[error("the ThreadSanitizer program: {0}")]
    Process(String),
    /// The configuration cannot be launched.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The job is beyond this detector.
    #[error("not for ThreadSanitizer: {0}")]
    NotCovered(String),
    /// A mutant that must be found was not.
    #[error("ThreadSanitizer sees nothing here: it did not find the race of the canary (relaxed_tag_store)")]
    Asleep,
    /// An answer that is none.
    #[error("the ThreadSanitizer program answered '{answer}'")]
    Answer { answer: String },
}

// In words, because not everybody who shows the error shows what is behind it.
impl From<std::io::Error> for ThreadSanitizerError {
    fn from(error: std::io::Error) -> Self {
        Self::Process(crate::file::reason(&error))
    }
}

/// One scan, under many schedules.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// What is scanned and how. Blocks have up to [`Job::BLOCK_THREADS`] threads, those beside the scanning ones included.
    pub request: ScanRequest,
    /// The fault that the kernels are to have ([`mutant_number`]), 0 for none.
    pub mutant: u32,
    /// One schedule a seed. Every fourth is the plain order: thread 0 first, each until it has to wait.
    pub seeds: Range<u64>,
    /// Blocks that may be started and not yet ended at one time; the whole grid where blocks stay and take one tile after
    /// the other.
    pub resident_blocks: u32,
    /// Scans of each schedule, one after the other in one workspace, each of another input.
    pub launches: u32,
    /// Probability that an access of the protocol switches to another thread.
    pub preemption: f64,
    /// Whether blocks start from the last to the first.
    pub reverse: bool,
    /// Whether the second launch is the one at the largest epoch. It scans a quarter of the elements, so that
    /// descriptors of the first stay behind it.
    pub wrap: bool,
    /// Whether every launch is given the arguments of the first, as by a captured graph.
    pub frozen: bool,
    /// When the process is killed; of several jobs in one, the longest.
    pub time_limit: Duration,
}

impl Job {
    /// Threads of a block that the program takes: 64 that scan, and those that look-ahead has beside them.
    pub const BLOCK_THREADS: u32 = 64 + abi::LOOKBACK_HELPER_WARPS * abi::LOOKBACK_WARP_LANES;
    /// Threads of all resident blocks: ThreadSanitizer keeps 256 apart and loses races of more without a word.
    pub const THREADS_AT_ONCE: u32 = 248;
    /// Blocks of a launch that the program takes: each has shared memory of its own.
    pub const BLOCKS: u64 = 1024;
    /// Blocks of a cluster; how many have room is another question.
    const CLUSTER_BLOCKS: RangeInclusive<u32> = 2..=abi::LOOKBACK_MAXIMUM_CLUSTER_BLOCKS;
    /// The completed epochs of a case whose second launch is the one at the largest epoch.
    pub const EPOCHS_BEFORE_WRAP: u32 = abi::LOOKBACK_MAXIMUM_EPOCH - 1;
    /// The instances that are compiled: values of 4, 8 and 16 bytes, and two operators that do not commute.
    pub const INSTANCES: [(ElementType, Operator); 4] = [
        (ElementType::U32, Operator::Sum),
        (ElementType::U64, Operator::Sum),
        (ElementType::AffineMap, Operator::Affine),
        (ElementType::IndexInterval, Operator::Intervals),
    ];

    /// A hundred schedules of one launch without a fault, two resident blocks, a third of the accesses preempted.
    pub fn new(request: ScanRequest) -> Self {
        Self {
            request,
            mutant: 0,
            seeds: 0..100,
            resident_blocks: 2,
            launches: 1,
            preemption: 0.3,
            reverse: false,
            wrap: false,
            frozen: false,
            time_limit: Duration::from_secs(60),
        }
    }

    /// Schedules of a case: those of its seed and the ones behind it. Only what `draw` of the search gives is sure to be covered.
    ///
    /// # Errors
    /// When the case is beyond this detector.
    pub fn of_case(case: &Case, schedules: u64) -> Result<Self, ThreadSanitizerError> {
        let beyond = |why: &str| Err(ThreadSanitizerError::NotCovered(why.to_owned()));
        if !case.workload.is_plain() {
            return beyond("its program has kernels of plain scans alone; leave the problem out");
        }
        if case.disturbance != Disturbance::None {
            return beyond("blocks are not paused or killed here, and launches neither ended nor interrupted");
        }
        if case.block_order == BlockOrder::Random {
            return beyond("blocks start in order or in reverse order here");
        }
        if case.together > 1 {
            return beyond("launches come one behind the end of the other here");
        }
        let Some(end) = case.seed.checked_add(schedules) else {
            return beyond("its seed is among the last that there are; give a smaller one");
        };
        let wrap = case.completed_epochs == Self::EPOCHS_BEFORE_WRAP;
        if case.workspace != WorkspaceStart::Zeros || !(wrap || case.completed_epochs == 0) {
            return beyond("a workspace is new here, and the second of three launches may be at the largest epoch");
        }
        let job = Self {
            mutant: case.mutant.map_or(0, Mutant::number),
            seeds: case.seed..end,
            resident_blocks: case.resident_blocks,
            launches: case.launches,
            preemption: f64::from(case.preemption.unwrap_or(0)) / 100.0,
            reverse: case.block_order == BlockOrder::Reverse,
            wrap,
            frozen: case.mutant.is_some_and(|mutant| mutant.when.needs(Need::Frozen)),
            ..Self::new(case.request)
        };
        job.check()?;
        Ok(job)
    }

    /// The same with the mutant of this name.
    #[must_use]
    pub fn with_mutant(self, name: &str) -> Self {
        Self { mutant: mutant_number(name), ..self }
    }

    fn blocks(&self) -> Blocks {
        self.request.strategy.row().shape.blocks
    }

    /// Threads of a block: those that hold values, and any beside them.
    fn threads(&self) -> u32 {
        let ScanConfig { block_threads, composition, .. } = self.request.config;
        self.request.strategy.row().shape.kernels[0].block_threads(block_threads, composition, self.request.problem)
    }

    fn check(&self) -> Result<(), ThreadSanitizerError> {
        let request = &self.request;
        let instance = request.instance().canonical();
        let threads = self.threads();
        let fault = if !Self::INSTANCES.contains(&(instance.element(), instance.operator())) {
            format!("there are no kernels of {instance} in its program")
        } else if threads > Self::BLOCK_THREADS {
            format!("{threads} threads a block, it takes up to {}", Self::BLOCK_THREADS)
        } else if u64::from(threads) * u64::from(self.resident_blocks) > u64::from(Self::THREADS_AT_ONCE) {
            format!(
                "{} resident blocks of {threads} threads, it keeps up to {} threads apart",
                self.resident_blocks,
                Self::THREADS_AT_ONCE
            )
        } else if self.blocks() == Blocks::Cluster && !Self::CLUSTER_BLOCKS.contains(&self.resident_blocks) {
            format!("a cluster of {} blocks, it takes from {} on", self.resident_blocks, Self::CLUSTER_BLOCKS.start())
        } else if request.n == 0 || self.resident_blocks == 0 || self.launches == 0 || self.seeds.is_empty() {
            String::from("there is nothing to run")
        } else if !(0.0..=1.0).contains(&self.preemption) {
            format!("the probability of preemption is {}; it must be from 0 to 1", self.preemption)
        } else {
            let steps = Plan::new(request)?.steps;
            let blocks = steps.iter().map(|step| grid_blocks(step, self.resident_blocks)).max().unwrap_or(0);
            if blocks <= Self::BLOCKS {
                return Ok(());
            }
            format!("{blocks} blocks, it takes up to {}", Self::BLOCKS)
        };
        Err(ThreadSanitizerError::NotCovered(fault))
    }

    /// What the program reads, see there.
    pub(super) fn text(&self) -> Result<String, ThreadSanitizerError> {
        self.check()?;
        let request = &self.request;
        let instance = request.instance().canonical();
        let plan = Plan::new(request)?;
        let mut text = String::new();
        let mut line = |key: &str, value: u64| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{key} {value}");
        };
        let is_it = |&(element, operator)| (element, operator) == (instance.element(), instance.operator());
        line("instance", Self::INSTANCES.iter().position(is_it).unwrap_or(Self::INSTANCES.len()) as u64);
        line("mutant", u64::from(self.mutant));
        line("first-seed", self.seeds.start);
        line("seeds", self.seeds.end - self.seeds.start);
        line("resident-blocks", u64::from(self.resident_blocks));
        line("launches", u64::from(self.launches));
        line("preemption", self.preemption_threshold());
        line("reverse", u64::from(self.reverse));
        line("wrap", u64::from(self.wrap));
        line("frozen", u64::from(self.frozen));
        line("mode", request.mode as u64);
        line("n", request.n);
        line("in-place", u64::from(request.in_place));
        line("input-offset", u64::from(request.input_offset));
        line("output-offset", u64::from(request.output_offset));
        line("scratch-bytes", plan.scratch_bytes);
        line("descriptors", plan.descriptors);
        line("descriptor-bytes", plan.descriptor_bytes);
        let blocks = self.resident_blocks;
        plan.steps.iter().for_each(|step| write_step(&mut text, "step", step, blocks));
        if self.wrap {
            let small = ScanRequest { n: request.n.div_ceil(4), ..*request };
            let _ = writeln!(text, "small-n {}", small.n);
            Plan::new(&small)?.steps.iter().for_each(|step| write_step(&mut text, "small-step", step, blocks));
        }
        let canary = self.canary();
        let _ = writeln!(text, "canary-n {}", canary.n);
        Plan::new(&canary)?.steps.iter().for_each(|step| write_step(&mut text, "canary-step", step, blocks));
        text.push_str("run\n");
        Ok(text)
    }

    /// The probability in 65536ths.
    fn preemption_threshold(&self) -> u64 {
        (self.preemption * 65536.0) as u64
    }

    /// A scan whose race must be found where this job is believed, on the same fibers: in blocks so small that those of a
    /// single larger one are two or more, because what runs on the fibers of an ended block has no race with it.
    fn canary(&self) -> ScanRequest {
        let block_threads = if self.threads().is_multiple_of(64) { 64 } else { abi::LOOKBACK_WARP_LANES };
        let descriptor = Some(Descriptor::Split);
        let config = ScanConfig { vt: 4, block_threads, descriptor, ..ScanConfig::default() };
        let n = 9 * u64::from(config.vt * config.block_threads);
        ScanRequest::aligned(Instance::SUM_OF_WORDS, Strategy::Lookback, Mode::Inclusive, config, n)
    }
}

/// Blocks of a launch: those that stay are all that are resident.
fn grid_blocks(step: &Step, resident_blocks: u32) -> u64 {
    let stay = step.kernel.is_persistent() || step.kernel.is_cluster();
    if stay { u64::from(resident_blocks) } else { step.grid_blocks }
}

/// One line: a launch as the program reads it.
fn write_step(text: &mut String, key: &str, step: &Step, resident_blocks: u32) {
    // The program draws how many stages a ring has.
    let config = step.config.to_abi(0);
    let has_ring = step.kernel.is_persistent();
    let stage_bytes = if has_ring { Ring::of(step.key()).stage_bytes } else { 0 };
    let place = |place| match place {
        Place::None => -1,
        Place::Input => -2,
        Place::Output => -3,
        Place::Scratch(offset) => offset.cast_signed(),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{key} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {stage_bytes} {}",
        step.kernel as u32,
        config.vt,
        config.block_threads,
        config.mode,
        config.pattern,
        config.composition,
        config.descriptor,
        config.tile_order,
        config.alignment,
        grid_blocks(step, resident_blocks),
        place(step.input),
        place(step.output),
        place(step.spine),
        step.n,
        step.tiles,
        step.stride,
        step.lead,
        step.block_threads(),
        u32::from(step.kernel.is_cluster())
    );
}
