//! The detectors of the kill table behind one interface.

use super::stress::THREAD_SANITIZER_CASE;
use crate::lab::stress::search::{Limits, Search, search};
use crate::lab::stress::table::{Cell, Detector};
use crate::lab::stress::thread_sanitizer::{self, ThreadSanitizer, ThreadSanitizerError};
use crate::lab::stress::{Memory, Mutant};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What a detector ran on: name and value.
pub(super) type Facts = Vec<(String, String)>;

/// Somebody who looks for faults.
pub(super) trait Examiner {
    /// Looks at the kernels with a fault, or as they are.
    fn examine(&mut self, mutant: Option<&'static Mutant>, limits: &Limits) -> Cell;

    /// What is better done for all mutants at once, before the first of them is examined.
    fn prepare(&mut self, _: &[&'static Mutant], _: &Limits) -> Result<(), String> {
        Ok(())
    }

    /// What it ran on.
    fn facts(&self) -> Facts {
        Vec::new()
    }
}

/// A detector that can be asked, or why it cannot.
pub(super) type Chosen = (Detector, Result<Box<dyn Examiner>, String>);

/// The detectors asked for; those that are not here, with the reason.
pub(super) fn examiners(chosen: &[Detector]) -> Vec<Chosen> {
    let make = |detector: Detector| -> Result<Box<dyn Examiner>, String> {
        match detector {
            Detector::CpuSchedules => Ok(Box::new(OnCpu { memory: Memory::Strong })),
            Detector::WeakMemory => Ok(Box::new(OnCpu { memory: Memory::Weak })),
            Detector::ThreadSanitizer => Ok(Box::new(Sanitized::new()?)),
            #[cfg(feature = "cuda")]
            Detector::Loom => Ok(Box::new(exhaustive::OnModel::new(exhaustive::Model::Loom)?)),
            #[cfg(feature = "cuda")]
            Detector::PtxEnumerator => Ok(Box::new(exhaustive::OnModel::new(exhaustive::Model::Ptx)?)),
            #[cfg(feature = "cuda")]
            Detector::GpuStress => Ok(Box::new(super::stress_gpu::OnGpu::new()?)),
            #[cfg(feature = "cuda")]
            Detector::ComputeSanitizer => Ok(Box::new(super::stress_gpu::UnderSanitizer::new()?)),
            #[cfg(not(feature = "cuda"))]
            _ => Err("not part of this build".to_owned()),
        }
    };
    chosen.iter().map(|&detector| (detector, make(detector))).collect()
}

/// Drawn cases on the CPU device.
struct OnCpu {
    memory: Memory,
}

impl Examiner for OnCpu {
    fn examine(&mut self, mutant: Option<&'static Mutant>, limits: &Limits) -> Cell {
        let Search { found, passed, elapsed, .. } = search(mutant, &[self.memory], *limits, &|_| {});
        let seconds = elapsed.as_secs_f64();
        match found {
            Some(found) => Cell::Killed {
                seed: Some(found.case.seed),
                // Those before it, and itself.
                runs: passed.launches() + 1,
                seconds,
                how: found.failure.to_string(),
                reproduce: Some(format!("lookback stress --replay '{}'", found.case)),
            },
            None => {
                let runs = if mutant.is_some() { passed.launches() } else { passed.schedules };
                Cell::Survived { runs, seconds }
            }
        }
    }
}

/// Drawn cases in a program that ThreadSanitizer watches.
struct Sanitized {
    detector: ThreadSanitizer,
    /// What is known of mutants, by their names.
    cells: BTreeMap<&'static str, Cell>,
    /// Schedules of all mutants.
    schedules: u64,
}

impl Sanitized {
    /// Schedules of a mutant. It goes by happens-before and not by what a schedule brings about, so it needs few.
    const SCHEDULES: u64 = 100;

    fn new() -> Result<Self, String> {
        let detector = ThreadSanitizer::new().map_err(|error| error.to_string())?;
        Ok(Self { detector, cells: BTreeMap::new(), schedules: 0 })
    }

    fn search(&self, mutant: Option<&'static Mutant>, limits: &Limits) -> Cell {
        // The kernels as they are over as many as all mutants together.
        let enough = if mutant.is_some() { Self::SCHEDULES } else { self.schedules.max(Self::SCHEDULES) };
        let limits = Limits { schedules: limits.schedules.min(enough), ..*limits };
        match thread_sanitizer::search(&self.detector, mutant, limits) {
            Ok(thread_sanitizer::Search { found: Some(found), schedules, elapsed }) => Cell::Killed {
                seed: Some(found.case.seed),
                runs: schedules,
                seconds: elapsed.as_secs_f64(),
                how: found.ending.to_string(),
                reproduce: Some(format!("lookback stress --replay '{THREAD_SANITIZER_CASE}{}'", found.case)),
            },
            Ok(thread_sanitizer::Search { found: None, schedules, elapsed }) => {
                Cell::Survived { runs: schedules, seconds: elapsed.as_secs_f64() }
            }
            Err(ThreadSanitizerError::NotCovered(why)) => Cell::NotModelled { why },
            Err(error) => Cell::NotRun { why: error.to_string() },
        }
    }

    fn keep(&mut self, mutant: &'static Mutant, cell: Cell) {
        if let Cell::Killed { runs, .. } | Cell::Survived { runs, .. } = cell {
            self.schedules += runs;
        }
        self.cells.insert(&mutant.name, cell);
    }
}

impl Examiner for Sanitized {
    /// A process is one thread, and most mutants take one process.
    fn prepare(&mut self, mutants: &[&'static Mutant], limits: &Limits) -> Result<(), String> {
        let one_thread = Limits { threads: 1, ..*limits };
        let next = AtomicUsize::new(0);
        let cells = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..limits.threads.max(1) {
                scope.spawn(|| {
                    while let Some(&mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let cell = self.search(Some(mutant), &one_thread);
                        cells.lock().unwrap_or_else(PoisonError::into_inner).push((mutant, cell));
                    }
                });
            }
        });
        for (mutant, cell) in cells.into_inner().unwrap_or_else(PoisonError::into_inner) {
            self.keep(mutant, cell);
        }
        Ok(())
    }

    fn examine(&mut self, mutant: Option<&'static Mutant>, limits: &Limits) -> Cell {
        match mutant {
            None => self.search(None, limits),
            Some(mutant) => match self.cells.get(mutant.name.as_str()) {
                Some(cell) => cell.clone(),
                None => {
                    let cell = self.search(Some(mutant), limits);
                    self.keep(mutant, cell.clone());
                    cell
                }
            },
        }
    }

    fn facts(&self) -> Facts {
        vec![("ThreadSanitizer's compiler".to_owned(), self.detector.compiler().to_owned())]
    }
}

/// Models of the protocol, made from the PTX of the very kernels.
#[cfg(feature = "cuda")]
mod exhaustive {
    use super::{Cell, Examiner, Facts, Limits, Mutant};
    use crate::cuda::Architecture;
    use crate::cuda::compile::{Compiler, Variant};
    use crate::element::{ElementType, Instance, Operator};
    use crate::lab::axiomatic::extract::extract;
    use crate::lab::axiomatic::sequences::Sequences;
    use crate::lab::axiomatic::{loom_model, protocol};
    use crate::strategy::plan::{Kernel, KernelConfig};
    use crate::strategy::{Composition, Descriptor, Mode, Pattern, Strategy, TileOrder};
    use std::collections::HashMap;
    use std::time::{Duration, Instant};

    /// Which model.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Model {
        Loom,
        Ptx,
    }

    /// Tiles of a model of the kernels as they are, and of those with a fault.
    const PTX_TILES: (usize, usize) = (5, 4);
    const LOOM_TILES: (usize, usize) = (4, 3);
    const KERNELS: [(Kernel, Strategy); 3] = [
        (Kernel::Lookback, Strategy::Lookback),
        (Kernel::Chained, Strategy::Chained),
        (Kernel::OneWave, Strategy::OneWave),
    ];
    /// What loom may take for one protocol.
    const LOOM_TIME: Duration = Duration::from_secs(120);
    const HOPPER: Architecture = Architecture { major: 9, minor: 0 };

    pub(super) struct OnModel {
        model: Model,
        compiler: Compiler,
        plain: HashMap<(Kernel, Descriptor), Sequences>,
    }

    impl OnModel {
        pub(super) fn new(model: Model) -> Result<Self, String> {
            let compiler = Compiler::new().map_err(|error| error.to_string())?;
            Ok(Self { model, compiler, plain: HashMap::new() })
        }

        fn sequences(&self, kernel: Kernel, descriptor: Descriptor, mutant: u32) -> Result<Sequences, String> {
            let element = if descriptor == Descriptor::Packed128 { ElementType::U64 } else { ElementType::U32 };
            let instance = Instance::new(element, Operator::Sum).map_err(|error| error.to_string())?;
            let config = KernelConfig {
                vt: 4,
                block_threads: 128,
                mode: Mode::Inclusive,
                pattern: Pattern::Shuffle,
                composition: Composition::ScanThenPropagate,
                descriptor,
                tile_order: TileOrder::Ticket,
            };
            let variant = Variant { mutant, ..Variant::default() };
            let ptx =
                self.compiler.ptx(kernel, instance, &config, HOPPER, variant).map_err(|error| error.to_string())?;
            extract(&ptx).map_err(|error| error.to_string())
        }

        /// Executions of a model, and what is wrong in one of them.
        fn check(&self, sequences: &Sequences, is_plain: bool) -> Result<(u64, Option<String>), String> {
            match self.model {
                Model::Ptx => {
                    let tiles = if is_plain { PTX_TILES.0 } else { PTX_TILES.1 };
                    let report = protocol::check(sequences, tiles).map_err(|error| error.to_string())?;
                    let violation =
                        report.violation().map(|(part, violation)| format!("{}: {}", part.name(), violation.what));
                    Ok((report.statistics().consistent, violation))
                }
                Model::Loom => {
                    let tiles = if is_plain { LOOM_TILES.0 } else { LOOM_TILES.1 };
                    let report = loom_model::check(sequences, tiles, LOOM_TIME).map_err(|error| error.to_string())?;
                    if report.violation.is_none() && !report.complete {
                        let seconds = LOOM_TIME.as_secs();
                        return Err(format!("the search over {tiles} tiles did not end within {seconds} s"));
                    }
                    Ok((report.executions, report.violation))
                }
            }
        }
    }

    impl Examiner for OnModel {
        fn examine(&mut self, mutant: Option<&'static Mutant>, _: &Limits) -> Cell {
            let start = Instant::now();
            let when = mutant.map(|mutant| mutant.when.clone()).unwrap_or_default();
            let number = mutant.map_or(0, Mutant::number);
            if mutant.is_some_and(Mutant::is_of_host) {
                return Cell::NotModelled { why: "the fault is in what the host does".to_owned() };
            }
            let mut runs = 0;
            let mut differs = false;
            for (kernel, strategy) in KERNELS {
                for &descriptor in Descriptor::ALL {
                    let strategy_fits = when.strategies.is_empty() || when.strategies.contains(&strategy);
                    let layout_fits = when.layouts.is_empty() || when.layouts.contains(&descriptor);
                    if !strategy_fits || !layout_fits {
                        continue;
                    }
                    let key = (kernel, descriptor);
                    if !self.plain.contains_key(&key) {
                        match self.sequences(kernel, descriptor, 0) {
                            Ok(sequences) => self.plain.insert(key, sequences),
                            Err(why) => return Cell::NotRun { why },
                        };
                    }
                    let sequences = match self.sequences(kernel, descriptor, number) {
                        Ok(sequences) => sequences,
                        Err(why) => return Cell::NotRun { why },
                    };
                    if mutant.is_some() && self.plain.get(&key) == Some(&sequences) {
                        continue;
                    }
                    differs = true;
                    match self.check(&sequences, mutant.is_none()) {
                        Ok((executions, None)) => runs += executions,
                        Ok((executions, Some(how))) => {
                            runs += executions;
                            let seconds = start.elapsed().as_secs_f64();
                            let how = format!("{strategy}, {descriptor}: {how}");
                            return Cell::Killed { seed: None, runs, seconds, how, reproduce: None };
                        }
                        Err(why) => return Cell::NotRun { why },
                    }
                }
            }
            if differs {
                Cell::Survived { runs, seconds: start.elapsed().as_secs_f64() }
            } else {
                let why = "the protocol that is read from its PTX is that of the kernels as they are";
                Cell::NotModelled { why: why.to_owned() }
            }
        }

        fn facts(&self) -> Facts {
            vec![(
                "CUDA compiler".to_owned(),
                format!("NVRTC {}.{}", self.compiler.nvrtc().version().0, self.compiler.nvrtc().version().1),
            )]
        }
    }
}
