//! The columns "loom" and "PTX": models of the protocol, made from the PTX of the very kernels.

use crate::cuda::Architecture;
use crate::cuda::compile::{Compiler, Variant};
use crate::element::{ElementType, Instance, Operator};
use crate::kernels::mutant::{Kind, Mutant};
use crate::lab::axiomatic::extract::extract;
use crate::lab::axiomatic::sequences::Sequences;
use crate::lab::axiomatic::{loom_model, protocol};
use crate::lab::stress::detector::{CannotRun, Cell, Detector, Facts, Found, Limits};
use crate::strategy::plan::{Plan, ScanRequest};
use crate::strategy::{Descriptor, Mode, ScanConfig, Strategy};
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
/// What loom may take for one protocol.
const LOOM_TIME: Duration = Duration::from_secs(120);
const HOPPER: Architecture = Architecture { major: 9, minor: 0 };

pub(super) struct OnModel {
    model: Model,
    compiler: Compiler,
    plain: HashMap<Place, Sequences>,
}

/// Where the protocol is read: strategy, layout, and the type whose size says how many words a descriptor has.
type Place = (Strategy, Descriptor, ElementType);

/// The layouts, each with a value that it is meant for; 128-bit words with one that takes two of them, too.
const LAYOUTS: [(Descriptor, ElementType); 4] = [
    (Descriptor::Packed64, ElementType::U32),
    (Descriptor::Packed128, ElementType::U64),
    (Descriptor::Split, ElementType::U32),
    (Descriptor::Packed128, ElementType::AffineMap),
];

impl OnModel {
    pub(super) fn new(model: Model) -> Result<Self, String> {
        let compiler = Compiler::new().map_err(|error| error.to_string())?;
        Ok(Self { model, compiler, plain: HashMap::new() })
    }

    /// What the protocol's accesses are in the kernel of a strategy.
    fn sequences(
        &self,
        (strategy, descriptor, element): Place,
        mutant: u32,
        (limits, start): (&Limits, Instant),
    ) -> Result<Sequences, String> {
        // Compiling takes much of it.
        if limits.are_over(start) {
            return Err("the time asked for was over before all kernels were compiled".to_owned());
        }
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let operator = if element == ElementType::AffineMap { Operator::Affine } else { Operator::Sum };
        let instance = Instance::new(element, operator).map_err(|error| text(&error))?;
        let config = ScanConfig { vt: 4, block_threads: 128, descriptor: Some(descriptor), ..ScanConfig::default() };
        let request = ScanRequest::aligned(instance, strategy, Mode::Inclusive, config, 1 << 20);
        let plan = Plan::new(&request).map_err(|error| text(&error))?;
        let step = plan.steps.iter().find(|step| step.uses_descriptors()).ok_or("no kernel of it uses descriptors")?;
        let variant = Variant { mutant, ..Variant::default() };
        let ptx = self.compiler.ptx(step.kernel, step.problem, &step.config, HOPPER, variant);
        let mut sequences = extract(&ptx.map_err(|error| text(&error))?).map_err(|error| text(&error))?;
        if self.model == Model::Loom {
            // There a tile is one thread: warps that meet are not seen, so a fault in how they do is none of its protocol.
            sequences.ring = None;
        }
        Ok(sequences)
    }

    /// Executions of a model, and what is wrong in one of them.
    fn check(
        &self,
        sequences: &Sequences,
        is_plain: bool,
        goes_on: (&Limits, Instant),
    ) -> Result<(u64, Option<String>), String> {
        let (limits, start) = goes_on;
        match self.model {
            Model::Ptx => {
                let tiles = if is_plain { PTX_TILES.0 } else { PTX_TILES.1 };
                let report = protocol::check_while(sequences, tiles, &|| !limits.are_over(start));
                let report = report.map_err(|error| error.to_string())?;
                let violation =
                    report.violation().map(|(part, violation)| format!("{}: {}", part.name(), violation.what));
                Ok((report.statistics().consistent, violation))
            }
            Model::Loom => {
                let tiles = if is_plain { LOOM_TILES.0 } else { LOOM_TILES.1 };
                let time = limits.remaining(start).map_or(LOOM_TIME, |time| time.min(LOOM_TIME));
                let report = loom_model::check(sequences, tiles, time).map_err(|error| error.to_string())?;
                if report.violation.is_none() && !report.complete {
                    let seconds = time.as_secs_f64();
                    return Err(format!("the search over {tiles} tiles did not end within {seconds:.1} s"));
                }
                Ok((report.executions, report.violation))
            }
        }
    }

    /// Every strategy and layout that is modelled and in which the fault can be.
    fn check_all(&mut self, mutant: Option<&'static Mutant>, limits: &Limits) -> Cell {
        let start = Instant::now();
        let when = mutant.map(|mutant| mutant.when.clone()).unwrap_or_default();
        let number = mutant.map_or(0, Mutant::number);
        if mutant.is_some_and(Mutant::is_of_host) {
            return Cell::NotModelled { why: "the fault is in what the host does".to_owned() };
        }
        // Nor are there barriers and loops, but for what the warps of look-ahead do: they need no look at the PTX.
        let is_modelled = |mutant: &Mutant| {
            let is_of_ring = mutant.kind == Kind::Barrier && mutant.file.ends_with("scan/lookahead.cuh");
            mutant.rule.is_none() || mutant.kind == Kind::Ordering || is_of_ring && self.model == Model::Ptx
        };
        if mutant.is_some_and(|mutant| !is_modelled(mutant)) {
            return Cell::NotModelled { why: "only the order of the protocol's accesses is modelled".to_owned() };
        }
        let mut runs = 0;
        let mut differs = false;
        for &strategy in Strategy::ALL.iter().filter(|strategy| strategy.row().is_modelled) {
            for (descriptor, element) in LAYOUTS {
                let strategy_fits = when.strategies.is_empty() || when.strategies.contains(&strategy);
                let layout_fits = when.layouts.is_empty() || when.layouts.contains(&descriptor);
                if !strategy_fits || !layout_fits {
                    continue;
                }
                let key = (strategy, descriptor, element);
                if !self.plain.contains_key(&key) {
                    match self.sequences(key, 0, (limits, start)) {
                        Ok(sequences) => self.plain.insert(key, sequences),
                        Err(why) => return Cell::NotRun { why },
                    };
                }
                let sequences = match self.sequences(key, number, (limits, start)) {
                    Ok(sequences) => sequences,
                    Err(why) => return Cell::NotRun { why },
                };
                if mutant.is_some() && self.plain.get(&key) == Some(&sequences) {
                    continue;
                }
                differs = true;
                match self.check(&sequences, mutant.is_none(), (limits, start)) {
                    Ok((executions, None)) => runs += executions,
                    Ok((executions, Some(how))) => {
                        runs += executions;
                        let seconds = start.elapsed().as_secs_f64();
                        let how = format!("{strategy}, {descriptor}, {element}: {how}");
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
}

impl Detector for OnModel {
    fn examine_all(&mut self, mutants: &[&'static Mutant], limits: &Limits, found: &Found) -> Result<(), CannotRun> {
        let rest = mutants.iter().take_while(|_| !limits.is_stopped());
        rest.for_each(|mutant| found(mutant, self.check_all(Some(mutant), limits)));
        Ok(())
    }

    fn examine_unmutated(&mut self, limits: &Limits) -> Result<Cell, CannotRun> {
        Ok(self.check_all(None, limits))
    }

    fn facts(&self) -> Facts {
        vec![("CUDA compiler".to_owned(), self.compiler.name())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_compiled_when_the_time_is_over() {
        let mut model = match OnModel::new(Model::Ptx) {
            Ok(model) => model,
            Err(why) => return println!("skipped: {why}"),
        };
        let limits = Limits { first_seed: 0, schedules: 1, time: Some(Duration::ZERO), threads: 1, stop: None };
        for mutant in [None, Some(Mutant::named("relaxed_tag").expect("one of the kernels'"))] {
            let cell = model.check_all(mutant, &limits);
            assert!(matches!(&cell, Cell::NotRun { why } if why.contains("the time asked for")), "{cell:?}");
        }
        assert!(model.plain.is_empty(), "a kernel was compiled");
    }
}
