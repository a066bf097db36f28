//! From the command line to the list of configurations that run, and of those that do not and why.

use super::arguments::{CompareArguments, Names};
use super::error::CliError;
use crate::element::{ElementType, Instance, Operator};
use crate::lab::dataset::NoScan;
use crate::lab::recorder::Skipped;
use crate::lab::workload::{ProblemKind, Shape, Workload};
use crate::strategy::plan::{Plan, ScanRequest};
use crate::strategy::tuning::{Resolved, Tuning};
use crate::strategy::{
    Composition, ConfigError, Descriptor, Limit, Mode, Pattern, ScanConfig, Strategy, StrategyChoice, TileOrder,
};
use crate::text::format_size;

/// What runs, in order, and what does not.
#[derive(Debug, Default)]
pub struct Jobs {
    /// Grouped by workload and n, so that an input is made and uploaded once.
    pub requests: Vec<Job>,
    /// What is left out, and why.
    pub skipped: Vec<Skipped>,
}

/// A configuration to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// What was asked for by name: a strategy, or `auto`.
    pub choice: StrategyChoice,
    /// What is scanned.
    pub workload: Workload,
    /// What runs.
    pub request: ScanRequest,
}

/// Defaults and limits of a kind of device.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Sizes of the default comparison.
    sizes: &'static [u64],
    /// Size of the default VT sweep.
    sweep_size: u64,
    /// VTs of the default sweep.
    sweep_vts: &'static [u32],
    /// Largest n of the naive strategy, whose work grows with n².
    naive_limit: u64,
    /// Largest n of the sequential strategy, which uses one thread.
    sequential_limit: u64,
}

impl Scale {
    /// The CPU device: a laptop does the default comparison in well under a minute.
    pub const CPU: Self = Self {
        sizes: &[1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18],
        sweep_size: 1 << 16,
        sweep_vts: &[1, 2, 4, 8, 16, 32, 64],
        naive_limit: 1 << 14,
        sequential_limit: 1 << 24,
    };
    /// A GPU.
    pub const GPU: Self = Self {
        sizes: &[1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28],
        sweep_size: 1 << 24,
        sweep_vts: &[1, 2, 4, 8, 16, 24, 32, 48, 64],
        naive_limit: 1 << 20,
        sequential_limit: 1 << 24,
    };

    /// The scale of a device by the `kind` of its description.
    pub fn of_kind(kind: &str) -> Self {
        if kind == "cuda" { Self::GPU } else { Self::CPU }
    }

    fn limit(&self, strategy: Strategy) -> Option<(u64, &'static str)> {
        strategy.row().limit.map(|limit| match limit {
            Limit::QuadraticWork => (self.naive_limit, "its work grows with n²"),
            Limit::OneThread => (self.sequential_limit, "it uses one thread"),
        })
    }
}

/// Strategies of the default VT sweep.
const SWEPT: [Strategy; 2] = [Strategy::ReduceThenScan, Strategy::Lookback];
/// Size of the default proof of order: not a power of two, and no multiple of a tile.
const PROOF_SIZE: u64 = 10_007;

impl Jobs {
    /// The configurations that `arguments` ask for on a device of this scale. `file` is type and number of
    /// elements of `--input`, `tuning` what `auto` goes by.
    ///
    /// # Errors
    /// When nothing is left to run, or a size is none for a type.
    pub fn new(
        arguments: &CompareArguments,
        scale: &Scale,
        file: Option<(ElementType, u64)>,
        tuning: &Tuning,
    ) -> Result<Self, CliError> {
        let choice = Choices::new(arguments, tuning);
        let mut jobs = Builder { arguments, scale, choice, jobs: Self::default(), refused: Vec::new() };
        for Asked { workload, n } in jobs.workloads(file) {
            jobs.add_workload(workload, n)?;
        }
        let defaults_only = arguments.types.is_none() && arguments.operators.is_none() && arguments.modes.is_none();
        let is_open = arguments.problem.is_none() && arguments.sizes.is_none() && file.is_none();
        if defaults_only && is_open {
            let instance = Instance::new(ElementType::IndexInterval, Operator::Intervals)
                .expect("intervals are defined on index intervals");
            for mode in [Mode::Inclusive, Mode::Exclusive] {
                jobs.add(
                    instance.into(),
                    &[mode],
                    PROOF_SIZE,
                    &jobs.choice.strategies.clone(),
                    arguments.vts.as_deref(),
                );
            }
        }
        jobs.skip_refused();
        let jobs = jobs.jobs;
        if jobs.requests.is_empty() {
            return Err(nothing_ran(&jobs.skipped));
        }
        Ok(jobs)
    }
}

impl Jobs {
    /// Whether more than one scan pattern or composition runs.
    pub fn has_patterns(&self) -> bool {
        let patterned = self.requests.iter().filter(|job| job.request.strategy.has_patterns());
        let mut choices = patterned
            .filter(|job| job.choice != StrategyChoice::Auto)
            .map(|job| (job.request.config.pattern, job.request.config.composition));
        let first = choices.next();
        choices.any(|choice| Some(choice) != first)
    }

    /// The one that runs, for an option that takes no more.
    ///
    /// # Errors
    /// When there are several.
    pub fn only(&self, option: &str) -> Result<&Job, CliError> {
        match &self.requests[..] {
            [job] => Ok(job),
            jobs => Err(CliError::Usage(format!(
                "{option} takes one configuration, and {} would run; name one strategy, type, operator, mode, size and VT",
                jobs.len()
            ))),
        }
    }
}

/// The lengths of rows, columns or runs of a problem, each with the elements of all of them where a shape says them.
pub(super) fn segments(
    kind: ProblemKind,
    shapes: Option<&[Shape]>,
    runs: Option<&[u64]>,
) -> Vec<(Option<u64>, Option<u64>)> {
    let runs = runs.unwrap_or(&[ProblemKind::DEFAULT_RUN]);
    let lengths: Vec<Option<u64>> = match kind {
        kind if kind.has_runs() => runs.iter().copied().map(Some).collect(),
        kind if kind.needs_shape() => vec![Some(ProblemKind::DEFAULT_LINE)],
        _ => vec![None],
    };
    let shapes: Vec<Option<Shape>> = match shapes {
        Some(shapes) => shapes.iter().copied().map(Some).collect(),
        None => vec![None],
    };
    let of_shape = |shape: Option<Shape>| match shape.and_then(|shape| kind.line_elements(shape)) {
        Some(elements) => vec![Some(elements)],
        None => lengths.clone(),
    };
    shapes
        .into_iter()
        .flat_map(|shape| {
            let n = shape.map(|shape| kind.elements(shape));
            of_shape(shape).into_iter().map(move |length| (length, n))
        })
        .collect()
}

/// The error of a comparison that compared nothing.
pub(super) fn nothing_ran(skipped: &[Skipped]) -> CliError {
    let reasons: Vec<_> = skipped.iter().map(|Skipped { what, why }| format!("\n  {what}: {why}")).collect();
    CliError::Usage(format!("nothing is left to run:{}", reasons.concat()))
}

/// The jobs so far, and what decides about further ones.
struct Builder<'a> {
    arguments: &'a CompareArguments,
    scale: &'a Scale,
    choice: Choices<'a>,
    jobs: Jobs,
    /// Strategies that do not scan a problem.
    refused: Vec<Refused>,
}

/// A strategy that does not scan a problem, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refused {
    workload: Workload,
    strategy: Strategy,
    error: ConfigError,
}

/// A workload that was asked for, with its elements where the lists of sizes do not say them.
struct Asked {
    workload: Workload,
    n: Option<u64>,
}

impl Builder<'_> {
    /// The workloads of all lists; `file` is type and number of elements of `--input`.
    fn workloads(&mut self, file: Option<(ElementType, u64)>) -> Vec<Asked> {
        let arguments = self.arguments;
        let pairs = self.types_and_operators(file.map(|(element, _)| element));
        let asked_for_all = is_all(&arguments.types)
            || is_all(&arguments.operators)
            || is_all(&arguments.input_types)
            || is_all(&arguments.problem);
        let mut workloads: Vec<Asked> = Vec::new();
        for &kind in arguments.problems() {
            if file.is_some() && !kind.has_one_input() {
                self.skip(kind.to_string(), NoScan::SeveralArrays(kind).to_string());
                continue;
            }
            for (segment_elements, n) in segments(kind, arguments.shape.as_deref(), arguments.run_length.as_deref()) {
                if let (Some(n), Some((_, elements))) = (n, file.filter(|&(_, elements)| Some(elements) != n)) {
                    self.skip(format!("{kind} of {n} elements"), format!("the file has {elements}"));
                    continue;
                }
                for &(element, operator) in &pairs {
                    let inputs = arguments.input_types.as_ref().filter(|_| kind.has_operator());
                    for &input in inputs.map_or(&[element][..], |names| &names.choices) {
                        match Workload::new(kind, operator, input, element, segment_elements) {
                            Ok(workload) => {
                                let n = n.or(file.map(|(_, n)| n));
                                if !workloads.iter().any(|asked| (asked.workload, asked.n) == (workload, n)) {
                                    workloads.push(Asked { workload, n });
                                }
                            }
                            Err(_) if asked_for_all => {}
                            Err(error) => {
                                let of = if input == element { String::new() } else { format!(" of {input}") };
                                let what = match kind {
                                    ProblemKind::Flat => format!("{element} {operator}{of}"),
                                    kind if kind.has_operator() => format!("{kind}: {element} {operator}{of}"),
                                    kind => format!("{kind} of {element}"),
                                };
                                let advice = match element.is_half() && kind.has_operator() {
                                    true => format!("; --types f32 --input-types {element} loads them"),
                                    false => String::new(),
                                };
                                self.skip(what, format!("{error}{advice}"));
                            }
                        }
                    }
                }
            }
        }
        workloads
    }

    fn types_and_operators(&self, file: Option<ElementType>) -> Vec<(ElementType, Operator)> {
        let arguments = self.arguments;
        let types = match file {
            Some(element) => Some(vec![element]),
            None => arguments.types.as_ref().map(|names| names.choices.clone()),
        };
        match (&types, &arguments.operators) {
            (None, None) => vec![(ElementType::U32, Operator::Sum)],
            (Some(types), None) => types.iter().map(|&element| (element, Operator::usual_of(element))).collect(),
            (None, Some(operators)) => {
                operators.choices.iter().map(|&operator| (operator.usual_element(), operator)).collect()
            }
            (Some(types), Some(operators)) => types
                .iter()
                .flat_map(|&element| operators.choices.iter().map(move |&operator| (element, operator)))
                .collect(),
        }
    }

    /// Adds a workload at all of its sizes, or at `fixed`, which a file or a shape says.
    fn add_workload(&mut self, workload: Workload, fixed: Option<u64>) -> Result<(), CliError> {
        let (arguments, scale) = (self.arguments, self.scale);
        let modes = self.modes(workload);
        let mut sizes = match (fixed, &arguments.sizes) {
            (Some(n), _) => vec![n],
            (None, None) => scale.sizes.to_vec(),
            (None, Some(sizes)) => sizes
                .iter()
                .map(|size| size.elements(workload.sized().bytes()))
                .collect::<Result<_, _>>()
                .map_err(|error| CliError::Usage(format!("--sizes of {workload}: {error}")))?,
        };
        if arguments.vts.is_some() && arguments.sizes.is_none() && fixed.is_none() {
            sizes = vec![scale.sweep_size];
        }
        let sweep_size = fixed.unwrap_or(scale.sweep_size);
        // Of one result there is one VT.
        let is_open = arguments.sizes.is_none() && arguments.shape.is_none();
        let sweep = arguments.vts.is_none() && is_open && arguments.save_output.is_none();
        if sweep && !sizes.contains(&sweep_size) {
            sizes.push(sweep_size);
        }
        sizes.sort_unstable();
        sizes.dedup();
        for n in sizes {
            if let Some(misfit) = workload.misfit(n) {
                self.skip(format!("{workload} at n = {}", format_size(n)), misfit);
                continue;
            }
            // At the size of the sweep the swept strategies run with all its VTs and the suggested one.
            let swept = |choice: &&StrategyChoice| {
                sweep && n == sweep_size && SWEPT.iter().any(|&strategy| **choice == StrategyChoice::Named(strategy))
            };
            let (swept, others): (Vec<StrategyChoice>, Vec<StrategyChoice>) =
                self.choice.strategies.iter().partition(swept);
            self.add(workload, &modes, n, &others, arguments.vts.as_deref());
            for strategy in swept {
                let mut vts = scale.sweep_vts.to_vec();
                vts.push(self.choice.resolve(strategy, workload, n).config.vt);
                vts.sort_unstable();
                vts.dedup();
                self.add(workload, &modes, n, &[strategy], Some(&vts));
            }
        }
        Ok(())
    }

    fn modes(&mut self, workload: Workload) -> Vec<Mode> {
        let arguments = self.arguments;
        let asked = arguments.modes.as_ref().map_or(vec![Mode::Inclusive], |names| names.choices.clone());
        let mut modes = Vec::new();
        for mode in asked {
            if workload.has_mode(mode) {
                modes.push(mode);
            } else if !is_all(&arguments.modes) {
                self.skip(format!("{mode} of {workload}"), workload.lacks_mode().to_owned());
            }
        }
        modes
    }

    /// Adds one block of the Cartesian product.
    fn add(&mut self, workload: Workload, modes: &[Mode], n: u64, strategies: &[StrategyChoice], vts: Option<&[u32]>) {
        let arguments = self.arguments;
        let [input_offset, output_offset] = arguments.offsets();
        for (offset, element) in [(input_offset, workload.input()), (output_offset, workload.element())] {
            let element_bytes = element.bytes() as u32;
            if !offset.is_multiple_of(element_bytes) {
                let why = format!("an offset is no multiple of its {element_bytes} bytes");
                return self.skip(workload.to_string(), why);
            }
        }
        if arguments.in_place && workload.row_stride().is_some() {
            return self.skip(format!("{workload} in place"), "it has an output of its own".to_owned());
        }
        if arguments.in_place && input_offset != output_offset {
            return self.skip("in place".to_owned(), "input and output offset differ".to_owned());
        }
        for &mode in modes {
            for &asked in strategies {
                let problem = workload.problem(n);
                let (strategy, configs) = self.choice.configs(asked, vts, workload, n);
                let in_place = arguments.in_place;
                let request_of = |config| ScanRequest {
                    in_place,
                    input_offset,
                    output_offset,
                    ..ScanRequest::of(problem, strategy, mode, config, n)
                };
                let refusal = configs.first().and_then(|&config| Plan::new(&request_of(config)).err());
                if let Some(error) = refusal.filter(ConfigError::is_of_problem) {
                    self.refuse(workload, strategy, error);
                    continue;
                }
                if let Some((limit, why)) = self.scale.limit(strategy).filter(|(limit, _)| n > *limit) {
                    let what = format!("{strategy} above n = {}", format_size(limit));
                    self.skip(what, why.to_owned());
                    continue;
                }
                for config in configs {
                    let request = request_of(config);
                    if let Err(error) = Plan::new(&request) {
                        let what = format!(
                            "{strategy}, {workload} {mode}, VT {}, {} threads",
                            config.vt, config.block_threads
                        );
                        self.skip(what, error.to_string());
                        continue;
                    }
                    let job = Job { choice: asked, workload, request };
                    if !self.jobs.requests.contains(&job) {
                        self.jobs.requests.push(job);
                    }
                }
            }
        }
    }

    /// Notes that a strategy does not scan a problem.
    fn refuse(&mut self, workload: Workload, strategy: Strategy, error: ConfigError) {
        let refused = Refused { workload, strategy, error };
        if !self.refused.contains(&refused) {
            self.refused.push(refused);
        }
    }

    /// Says which strategies do not scan a problem: those of one reason in one line.
    fn skip_refused(&mut self) {
        let mut refused = std::mem::take(&mut self.refused);
        while let Some(first) = refused.first().cloned() {
            let is_alike = |other: &Refused| {
                let same_reason = std::mem::discriminant(&other.error) == std::mem::discriminant(&first.error);
                other.workload == first.workload && same_reason
            };
            let alike: Vec<&str> =
                refused.iter().filter(|other| is_alike(other)).map(|other| other.strategy.name()).collect();
            let why_several = first.error.why_several().filter(|_| alike.len() > 1);
            let why = why_several.unwrap_or_else(|| first.error.to_string());
            let what = format!("{} by {}", first.workload, alike.join(", "));
            refused.retain(|other| !is_alike(other));
            self.skip(what, why);
        }
    }

    fn skip(&mut self, what: String, why: String) {
        let skipped = Skipped { what, why };
        if !self.jobs.skipped.contains(&skipped) {
            self.jobs.skipped.push(skipped);
        }
    }
}

fn is_all<T>(names: &Option<Names<T>>) -> bool {
    names.as_ref().is_some_and(|names| names.all)
}

/// Lists of the command line with their defaults.
struct Choices<'a> {
    strategies: Vec<StrategyChoice>,
    tuning: &'a Tuning,
    /// Where input and output begin above a boundary, in bytes.
    offsets: [u32; 2],
    blocks: Option<&'a [u32]>,
    patterns: Vec<Pattern>,
    /// Those asked for.
    compositions: Option<Vec<Composition>>,
    descriptors: Vec<Option<Descriptor>>,
    tile_orders: Vec<TileOrder>,
    all_patterns: bool,
}

impl<'a> Choices<'a> {
    fn new(arguments: &'a CompareArguments, tuning: &'a Tuning) -> Self {
        fn list<T: Copy>(names: &Option<Names<T>>, default: T) -> Vec<T> {
            names.as_ref().map_or(vec![default], |names| names.choices.clone())
        }
        let default = ScanConfig::default();
        Self {
            strategies: (arguments.strategies.as_ref())
                .map_or(StrategyChoice::ALL.to_vec(), |names| names.choices.clone()),
            tuning,
            offsets: arguments.offsets(),
            blocks: arguments.blocks.as_deref(),
            patterns: list(&arguments.pattern, default.pattern),
            compositions: arguments.composition.as_ref().map(|names| names.choices.clone()),
            descriptors: (arguments.descriptor.as_ref())
                .map_or(vec![default.descriptor], |names| names.choices.iter().copied().map(Some).collect()),
            tile_orders: list(&arguments.tile_order, default.tile_order),
            all_patterns: is_all(&arguments.pattern) || is_all(&arguments.composition),
        }
    }

    fn resolve(&self, choice: StrategyChoice, workload: Workload, n: u64) -> Resolved {
        self.tuning.choose(choice, workload.problem(n), n, workload.line_elements(), self.offsets)
    }

    /// The strategy and its configurations. A choice on which the strategy does not depend keeps its default, so that
    /// it runs once; a choice that the user left open is what is suggested for the size. `auto` runs what the tuning
    /// table names, whatever the lists say.
    fn configs(
        &self,
        choice: StrategyChoice,
        vts: Option<&[u32]>,
        workload: Workload,
        n: u64,
    ) -> (Strategy, Vec<ScanConfig>) {
        let problem = workload.problem(n);
        let Resolved { strategy, config } = self.resolve(choice, workload, n);
        // One composition for all types, so that they are compared; but where the problem has one alone.
        let composition =
            if problem.is_reproducible() { config.composition } else { ScanConfig::default().composition };
        match choice {
            StrategyChoice::Named(_) => (strategy, self.configs_of(strategy, vts, config, composition)),
            StrategyChoice::Auto => (strategy, vec![config]),
        }
    }

    /// The variations of a configuration that the lists ask for; `composition` where they ask for none.
    fn configs_of(
        &self,
        strategy: Strategy,
        vts: Option<&[u32]>,
        default: ScanConfig,
        composition: Composition,
    ) -> Vec<ScanConfig> {
        let (tiles, patterned, single_pass) =
            (strategy.has_tiles(), strategy.has_patterns(), strategy.is_single_pass());
        let suggested = ([default.vt], [default.block_threads]);
        let blocks = self.blocks.filter(|_| strategy.has_blocks()).unwrap_or(&suggested.1);
        let vts = vts.filter(|_| tiles).unwrap_or(&suggested.0);
        let patterns = if patterned { &self.patterns[..] } else { &[default.pattern] };
        let compositions = match &self.compositions {
            Some(asked) if patterned => &asked[..],
            None if patterned => &[composition],
            _ => &[default.composition],
        };
        let descriptors = if single_pass { &self.descriptors[..] } else { &[default.descriptor] };
        let tile_orders = if single_pass { &self.tile_orders[..] } else { &[default.tile_order] };
        let mut configs = varied(vec![default], blocks, |config, threads| config.block_threads = threads);
        configs = varied(configs, vts, |config, vt| config.vt = vt);
        configs = varied(configs, descriptors, |config, descriptor| config.descriptor = descriptor);
        configs = varied(configs, tile_orders, |config, tile_order| config.tile_order = tile_order);
        // Last, because they are the columns of a table.
        configs = varied(configs, patterns, |config, pattern| config.pattern = pattern);
        configs = varied(configs, compositions, |config, composition| config.composition = composition);
        // It does not exist. Asked for by name, it is left out with the reason.
        let exists =
            |config: &ScanConfig| config.pattern != Pattern::Shuffle || config.composition != Composition::Block;
        configs.retain(|config| !self.all_patterns || exists(config));
        configs
    }
}

/// Each configuration with each of the values.
fn varied<T: Copy>(configs: Vec<ScanConfig>, values: &[T], set: fn(&mut ScanConfig, T)) -> Vec<ScanConfig> {
    let all = configs.into_iter().flat_map(|config| values.iter().map(move |&value| (config, value)));
    all.map(|(mut config, value)| {
        set(&mut config, value);
        config
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Wrapper {
        #[command(flatten)]
        compare: CompareArguments,
    }

    fn jobs(words: &[&str]) -> Result<Jobs, CliError> {
        let arguments = Wrapper::try_parse_from(["compare"].iter().chain(words)).unwrap().compare;
        Jobs::new(&arguments, &Scale::CPU, None, &Tuning::default())
    }

    #[test]
    fn without_options_every_strategy_runs_and_vt_is_swept() {
        let jobs = jobs(&[]).unwrap();
        for &choice in StrategyChoice::ALL {
            assert!(jobs.requests.iter().any(|job| job.choice == choice), "{choice}");
        }
        for strategy in SWEPT {
            let named = StrategyChoice::Named(strategy);
            let vts = |job: &&Job| job.choice == named && job.request.n == Scale::CPU.sweep_size;
            assert_eq!(jobs.requests.iter().filter(vts).count(), Scale::CPU.sweep_vts.len());
        }
        assert!(jobs.requests.iter().any(|job| job.request.instance().operator() == Operator::Intervals));
    }

    #[test]
    fn the_suggested_vt_is_among_those_that_are_swept() {
        let arguments = Wrapper::try_parse_from(["compare"]).unwrap().compare;
        for scale in [Scale::CPU, Scale::GPU] {
            let jobs = Jobs::new(&arguments, &scale, None, &Tuning::default()).unwrap();
            for strategy in SWEPT {
                let suggested = ScanConfig::suggested(strategy, 4, scale.sweep_size);
                assert!(jobs.requests.iter().any(|Job { request, .. }| {
                    (request.strategy, request.n, request.config.vt) == (strategy, scale.sweep_size, suggested.vt)
                }));
            }
        }
    }

    #[test]
    fn problems_are_a_list_beside_the_others() {
        let jobs =
            jobs(&["--problem", "flat,rows,by-key", "--types", "f32", "--sizes", "1024", "--run-length", "3,61"]);
        let jobs = jobs.unwrap();
        let mut names: Vec<String> = jobs.requests.iter().map(|job| job.workload.to_string()).collect();
        names.dedup();
        let runs = [3, 61].map(|run| format!("f32 sum, by key in runs of {run}"));
        assert_eq!(names, ["f32 sum", "f32 sum, rows of 256", &runs[0], &runs[1]]);
        for job in &jobs.requests {
            assert_eq!(job.request.problem, job.workload.problem(1024));
        }
        // A line for all strategies of one reason.
        let of_rows = jobs.skipped.iter().filter(|skipped| skipped.what.starts_with("f32 sum, rows of 256 by "));
        assert_eq!(of_rows.map(|skipped| skipped.what.contains("naive, hillis-steele")).collect::<Vec<_>>(), [true]);
    }

    #[test]
    fn a_shape_is_the_size_of_every_problem() {
        let problems = "flat,rows,recurrence,columns";
        let words = ["--problem", problems, "--shape", "4x300,300x4", "--strategies", "lookback"];
        let jobs = jobs(&words).unwrap();
        assert!(jobs.requests.iter().all(|job| job.request.n == 1200));
        let lines: Vec<_> = jobs.requests.iter().map(|job| job.workload.line_elements()).collect();
        assert_eq!(lines, [None, Some(300), Some(4), Some(300), Some(4), Some(4), Some(300)]);
    }

    #[test]
    fn columns_are_scanned_in_the_tiles_of_columns_and_a_line_says_why_by_no_others() {
        let jobs = jobs(&["--problem", "columns", "--shape", "4096x64", "--types", "f32"]).unwrap();
        let problem = jobs.requests[0].workload.problem(4096 * 64);
        let of_auto = Tuning::default().choose(StrategyChoice::Auto, problem, 4096 * 64, None, [0, 0]);
        let ran: Vec<_> = jobs.requests.iter().map(|job| (job.choice, job.request.config)).collect();
        let ahead = Tuning::suggested(Strategy::Lookahead, problem, 4096 * 64).config;
        let [lookback, lookahead] = [Strategy::Lookback, Strategy::Lookahead].map(StrategyChoice::Named);
        assert_eq!(ran, [(lookback, of_auto.config), (lookahead, ahead), (StrategyChoice::Auto, of_auto.config)]);
        let why = |name: &str| {
            let is_about = |skipped: &&Skipped| skipped.what.split([' ', ',']).any(|word| word == name);
            jobs.skipped.iter().filter(is_about).map(|skipped| skipped.why.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(why("one-wave"), ["they scan along rows; choose 'auto', 'lookback' or 'lookahead'"]);
        assert_eq!(why("reduce-then-scan"), why("one-wave"));
        assert_eq!(why("naive").len(), 1);
    }

    #[test]
    fn what_is_loaded_may_be_of_another_type() {
        let words = ["--types", "u32,f32", "--input-types", "u8,f16", "--sizes", "100", "--strategies", "lookback"];
        let jobs = jobs(&words).unwrap();
        let names: Vec<String> = jobs.requests.iter().map(|job| job.workload.to_string()).collect();
        assert_eq!(names, ["u32 sum of u8", "f32 sum of u8", "f32 sum of f16"]);
        assert!(jobs.skipped.iter().any(|skipped| skipped.what == "u32 sum of f16"), "{:?}", jobs.skipped);
    }

    #[test]
    fn rows_that_do_not_fill_the_array_and_files_of_one_array_are_said() {
        let skipped = jobs(&["--problem", "flat,rows", "--sizes", "1000"]).unwrap().skipped;
        assert!(skipped.iter().any(|skipped| skipped.why.contains("no whole rows of 256")), "{skipped:?}");
        let arguments = Wrapper::try_parse_from(["compare", "--problem", "reverse,by-key,rows", "--shape", "2x50"]);
        let file = Some((ElementType::F32, 100));
        let jobs = Jobs::new(&arguments.unwrap().compare, &Scale::CPU, file, &Tuning::default()).unwrap();
        assert!(jobs.requests.iter().all(|job| job.request.n == 100 && job.workload.element() == ElementType::F32));
        assert!(jobs.skipped.iter().any(|skipped| skipped.what == "by-key"), "{:?}", jobs.skipped);
    }

    #[test]
    fn what_is_too_slow_is_said_once() {
        let jobs = jobs(&["--sizes", "2^14,2^15,2^16", "--strategies", "naive"]).unwrap();
        assert_eq!(jobs.requests.len(), 1);
        assert_eq!(jobs.skipped.len(), 1);
        assert_eq!(jobs.skipped[0].what, "naive above n = 2^14");
    }

    #[test]
    fn nothing_runs_twice() {
        let jobs = jobs(&["--types", "u32", "--sizes", "1000,1000", "--vts", "1,2", "--blocks", "32,64"]).unwrap();
        let of = |strategy| jobs.requests.iter().filter(|job| job.choice == StrategyChoice::Named(strategy)).count();
        assert_eq!((of(Strategy::Sequential), of(Strategy::Naive), of(Strategy::Lookback)), (1, 2, 4));
    }

    #[test]
    fn auto_is_one_configuration_a_size_whatever_the_lists_say() {
        let words = ["--strategies", "auto,single-block", "--sizes", "1000,2^24", "--vts", "1,2", "--blocks", "32"];
        let jobs = jobs(&words).unwrap();
        let autos: Vec<_> = jobs.requests.iter().filter(|job| job.choice == StrategyChoice::Auto).collect();
        assert_eq!(autos.len(), 2);
        for job in autos {
            let Resolved { strategy, config } = Tuning::default().resolve(job.request.instance(), job.request.n);
            assert_eq!((job.request.strategy, job.request.config), (strategy, config));
        }
        // What auto came to runs beside the same strategy by its own name.
        assert_eq!(jobs.requests.len(), 2 + 2 * 2);
    }

    #[test]
    fn types_and_operators_complete_each_other() {
        let of = |words: &[&str]| {
            let mut instances: Vec<_> =
                jobs(words).unwrap().requests.iter().map(|job| job.request.instance().to_string()).collect();
            instances.dedup();
            instances
        };
        assert_eq!(of(&["--operators", "affine,max"]), ["affine", "u32 max"]);
        assert_eq!(of(&["--types", "f32,bicyclic-pair"]), ["f32 sum", "bicyclic"]);
        assert_eq!(of(&["--types", "all"]).len(), ElementType::SCANNED.len());
        assert_eq!(of(&["--types", "all", "--operators", "all"]).len(), Instance::all().count());
        let mixed = jobs(&["--types", "f32,u8", "--operators", "and"]).unwrap();
        assert_eq!(mixed.skipped.iter().filter(|skipped| skipped.what == "f32 and").count(), 1);
        assert!(matches!(jobs(&["--types", "f32", "--operators", "and"]), Err(CliError::Usage(_))));
    }

    #[test]
    fn one_input_serves_all_requests_in_a_row() {
        let jobs = jobs(&["--types", "all", "--modes", "all"]).unwrap();
        let mut inputs: Vec<_> = jobs.requests.iter().map(|job| (job.request.instance(), job.request.n)).collect();
        inputs.dedup();
        let in_a_row = inputs.len();
        inputs.sort_unstable();
        inputs.dedup();
        assert_eq!(inputs.len(), in_a_row);
    }
}
