//! What `docs/lesson.md` shows of runs on the CPU device: each figure has its command, and this is where they are made.

use crate::element::{ElementType, Instance, Operator};
use crate::kernels::mutant::Mutant;
use crate::lab::cpu_device::{CpuDevice, CpuSettings};
use crate::lab::dataset::Dataset;
use crate::lab::device::{Counters, Device, DeviceError, RunSettings, TraceSettings};
use crate::lab::stress::case::Case;
use crate::lab::stress::outcome::{Failure, Fault};
use crate::lab::stress::replay::{Replayed, replay};
use crate::lab::stress::scan_case::CaseError;
use crate::lab::trace::team::{TEXTBOOK, TeamError, TeamScan, Textbook};
use crate::lab::trace::{Recording, Step};
use crate::strategy::plan::ScanRequest;
use crate::strategy::{Mode, Pattern, ScanConfig, Strategy};

/// What keeps the lesson from being made.
#[derive(Debug, thiserror::Error)]
pub enum LessonError {
    /// A scan did not run.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The scan of a team did not run.
    #[error(transparent)]
    Team(#[from] TeamError),
    /// A case of the last part is none.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// Something came out that must not.
    #[error("{0}")]
    Unexpected(String),
}

/// Threads of a warp, and of the block whose scans are counted beside its.
pub const TEAMS: [u32; 2] = [32, 256];

/// The array of the parts that count.
pub const COUNTED: u64 = 1 << 16;
/// The seed of all parts but the last.
pub const SEED: u64 = 7;
/// Strategies that are counted, from three launches to one.
pub const STRATEGIES: [Strategy; 5] =
    [Strategy::ScanThenPropagate, Strategy::ReduceThenScan, Strategy::Chained, Strategy::Lookback, Strategy::Lookahead];
/// Strategies whose tiles are watched side by side.
pub const WATCHED: [Strategy; 3] = [Strategy::Chained, Strategy::Lookback, Strategy::Lookahead];
/// Their array: 16 tiles.
pub const WATCHED_N: u64 = 4096;
const WATCHED_CONFIG: (u32, u32) = (4, 64);
/// Values per thread with which strategies are counted, and those with which look-back is.
pub const VT: u32 = 8;
/// See [`VT`].
pub const VTS: [u32; 6] = [1, 2, 4, VT, 16, 32];
/// Threads of a block where anything is counted.
pub const THREADS: u32 = 128;

/// The scan of a strategy as the command line of the CPU device runs it.
struct Runner {
    device: CpuDevice,
    instance: Instance,
}

impl Runner {
    fn new() -> Result<Self, LessonError> {
        let instance = Instance::new(ElementType::U32, Operator::Sum);
        let instance = instance.map_err(|error| LessonError::Unexpected(error.to_string()))?;
        Ok(Self { device: CpuDevice::new(CpuSettings::like_a_gpu()), instance })
    }

    fn request(
        &mut self,
        strategy: Strategy,
        n: u64,
        (vt, block_threads): (u32, u32),
    ) -> Result<ScanRequest, LessonError> {
        self.device.load(&Dataset::random(self.instance, n, SEED))?;
        let config = ScanConfig { vt, block_threads, ..ScanConfig::default() };
        Ok(ScanRequest::aligned(self.instance, strategy, Mode::Inclusive, config, n))
    }

    fn counters(&mut self, strategy: Strategy, vt: u32) -> Result<Counters, LessonError> {
        let request = self.request(strategy, COUNTED, (vt, THREADS))?;
        let outcome = self.device.run(&request, &RunSettings { seed: SEED, ..RunSettings::default() })?;
        let is_right = outcome.verification.passed();
        let wrong = || LessonError::Unexpected(format!("{strategy} with VT {vt} is wrong"));
        outcome.counters.filter(|_| is_right).ok_or_else(wrong)
    }
}

/// What each strategy of [`STRATEGIES`] does with an array of [`COUNTED`] elements and [`VT`].
///
/// # Errors
/// When a scan does not run or is wrong.
pub fn launches() -> Result<Vec<(Strategy, Counters)>, LessonError> {
    let mut runner = Runner::new()?;
    STRATEGIES.iter().map(|&strategy| Ok((strategy, runner.counters(strategy, VT)?))).collect()
}

/// What look-back does with that array, by VT.
///
/// # Errors
/// When a scan does not run or is wrong.
pub fn vts() -> Result<Vec<(u32, Counters)>, LessonError> {
    let mut runner = Runner::new()?;
    VTS.iter().map(|&vt| Ok((vt, runner.counters(Strategy::Lookback, vt)?))).collect()
}

/// Tiles of the array with a VT.
pub fn tiles(vt: u32) -> u64 {
    COUNTED.div_ceil(u64::from(vt * THREADS))
}

/// The scans of teams of [`TEAMS`] by all patterns, each beside its textbook; by shuffles those of a warp alone.
///
/// # Errors
/// When one does not run or is wrong.
pub fn teams() -> Result<Vec<(Textbook, TeamScan)>, LessonError> {
    let of = |threads: u32| TEXTBOOK.iter().map(move |textbook| (*textbook, threads));
    let exists = |(textbook, threads): &(Textbook, u32)| textbook.pattern != Pattern::Shuffle || *threads == TEAMS[0];
    let teams = TEAMS.into_iter().flat_map(of).filter(exists);
    teams.map(|(textbook, threads)| Ok((textbook, TeamScan::run(textbook.pattern, threads)?))).collect()
}

/// What the tiles of [`WATCHED`] come to, on one seed.
///
/// # Errors
/// When a scan does not run or is wrong.
pub fn watched() -> Result<Vec<Recording>, LessonError> {
    let mut runner = Runner::new()?;
    let record = |&strategy: &Strategy| {
        let request = runner.request(strategy, WATCHED_N, WATCHED_CONFIG)?;
        let recording = runner.device.trace(&request, &TraceSettings { seed: SEED, is_cold: false })?;
        let wrong = || LessonError::Unexpected(format!("{strategy} is wrong"));
        recording.is_right.then_some(recording).ok_or_else(wrong)
    };
    WATCHED.iter().map(record).collect()
}

/// Six faults, three of the look-back's own arithmetic, one of order, one inside a block, one of the ring: the smallest case of
/// each that `lookback stress --mutant` found.
const BREAKS: [&str; 6] = [
    "mutant=does_not_wait,strategy=lookback,type=u16,operator=sum,mode=inclusive,layout=packed-128,pattern=shuffle,composition=scan-then-propagate,vt=1,threads=32,in-place=false,input-offset=0,output-offset=0,n=64,order=ticket,memory=weak,seed=3,resident=1,blocks=in-order,preemption=100,plain-points=false,launches=1,epochs=0,workspace=zeros",
    "mutant=stops_at_aggregate,strategy=lookback,type=u16,operator=sum,mode=inclusive,layout=packed-128,pattern=shuffle,composition=scan-then-propagate,vt=1,threads=32,in-place=false,input-offset=0,output-offset=0,n=96,order=ticket,memory=weak,seed=1,resident=1,blocks=in-order,preemption=100,plain-points=false,launches=1,epochs=0,workspace=zeros",
    "mutant=passes_prefix,strategy=lookback,type=u16,operator=sum,mode=inclusive,layout=packed-128,pattern=shuffle,composition=scan-then-propagate,vt=1,threads=32,in-place=false,input-offset=0,output-offset=0,n=96,order=ticket,memory=strong,seed=3,resident=1,blocks=in-order,preemption=100,plain-points=false,launches=1,epochs=0,workspace=zeros",
    "mutant=relaxed_tag,strategy=chained,type=u16,operator=sum,mode=inclusive,layout=split,pattern=shuffle,composition=scan-then-propagate,vt=1,threads=32,in-place=false,input-offset=0,output-offset=0,n=64,order=ticket,memory=weak,seed=0,resident=1,blocks=in-order,preemption=100,plain-points=false,launches=1,epochs=0,workspace=zeros",
    "mutant=kogge_stone_read_barrier_dropped,strategy=reduce-then-scan,type=u16,operator=sum,mode=inclusive,layout=none,pattern=kogge-stone,composition=reduce-then-scan,vt=1,threads=32,in-place=false,input-offset=0,output-offset=0,n=32,order=ticket,memory=weak,seed=0,resident=1,blocks=in-order,preemption=50,plain-points=false,launches=1,epochs=0,workspace=zeros",
    "mutant=drained_too_early,strategy=lookahead,type=u16,operator=sum,mode=inclusive,layout=packed-128,pattern=shuffle,composition=scan-then-propagate,vt=1,threads=32,in-place=false,input-offset=0,output-offset=0,n=32,order=ticket,memory=weak,seed=5,resident=1,blocks=in-order,preemption=100,plain-points=false,launches=1,epochs=0,workspace=zeros",
];

/// What came of a fault.
#[derive(Debug)]
pub struct Broken {
    /// Which fault.
    pub mutant: &'static Mutant,
    /// Its case, as `lookback stress --replay` takes it.
    pub case: &'static str,
    /// How it showed.
    pub failure: String,
    /// The step of the scheduler by which it had happened, where a kernel tells steps: when the prefix of the first wrong tile
    /// was known, or the last one before the run ended.
    pub step: Option<u64>,
    /// The interleaving, an access a line.
    pub interleaving: String,
}

/// Lines of each interleaving.
const LINES: usize = 400;

/// Runs the six faults.
///
/// # Errors
/// When a case is none any more, or passes.
pub fn broken() -> Result<Vec<Broken>, LessonError> {
    BREAKS.iter().map(|case| broken_by(case)).collect()
}

fn broken_by(text: &'static str) -> Result<Broken, LessonError> {
    let case: Case = text.parse()?;
    let without = || LessonError::Unexpected("a case without a fault".to_owned());
    let mutant = case.mutant.ok_or_else(without)?;
    let Replayed { text: interleaving, result, launches } = replay(&case, LINES);
    let Err(Failure { fault, .. }) = result else {
        let name = &mutant.name;
        return Err(LessonError::Unexpected(format!(
            "the case of {name} passes; lookback stress --mutant {name} finds one"
        )));
    };
    let config = case.request.config;
    let wrong_tile = match fault {
        Fault::WrongResult { index, .. } => Some(index / u64::from(config.vt * config.block_threads)),
        _ => None,
    };
    let events = launches.last().map(|(_, recording)| recording.events.as_slice()).unwrap_or_default();
    let known = events.iter().filter(|event| event.step == Step::Prefix && Some(event.tile) == wrong_tile);
    let known = known.map(|event| event.time).min();
    let step = known.or_else(|| events.iter().map(|event| event.time).max());
    Ok(Broken { mutant, case: text, failure: fault.to_string(), step, interleaving })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_faults_go_wrong_each_in_its_own_way() {
        let broken = broken().unwrap();
        let words: Vec<&str> = broken.iter().map(|broken| broken.failure.as_str()).collect();
        assert!(words[..3].iter().all(|words| words.contains("elements are wrong")), "{words:?}");
        assert!(words[3..].iter().all(|words| words.contains("data race")), "{words:?}");
        assert!(broken.iter().all(|broken| broken.interleaving.lines().count() > 4), "{broken:?}");
        assert!(broken[..4].iter().all(|broken| broken.step.is_some()));
    }

    #[test]
    fn one_launch_moves_each_element_twice_and_three_launches_more() {
        let moves = |counters: Counters| (counters.element_reads + counters.element_writes) as f64 / COUNTED as f64;
        let launches = launches().unwrap();
        let moves: Vec<f64> = launches.into_iter().map(|(_, counters)| moves(counters)).collect();
        assert_eq!(moves[..4], [4.0, 3.0, 2.0, 2.0]);
    }
}
