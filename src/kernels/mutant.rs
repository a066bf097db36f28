//! The faults that the kernels can be given on purpose: rows of `cuda/faults`, and what follows from the rules of
//! `src/kernels/rules.rs`. `build.rs` weaves them into the kernels and lists them here.
//!
//! `when` says where a fault can show, as a list of `key=value[,value]` separated by blanks; docs/stress.md lists the keys.
//!
//! Faults of `cuda/faults/gpu` are of code that only a GPU runs ([`GpuFault`]): no schedule reaches them, and each names the
//! check of the PTX that must see it.

use super::sources::scan_source;
pub use crate::element::OPERATORS_WITH_MUTANTS;
use crate::element::{ElementType, Instance};
use crate::gpu::Architecture;
use crate::names::named;
use crate::strategy::plan::{Plan, ScanRequest};
use crate::strategy::{Blocks, Composition, Descriptor, Mode, Pattern, ScanConfig, Strategy, StrategyRow};
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

include!(concat!(env!("OUT_DIR"), "/faults.rs"));

/// A row of `cuda/faults`, or what follows from a rule.
struct Fault {
    /// The kernel file, below `cuda/`.
    file: &'static str,
    /// Where its first edit stands there.
    line: u32,
    name: &'static str,
    /// The rule that it follows from.
    rule: Option<&'static str>,
    when: &'static str,
    text: &'static str,
}

named! {
    /// What sees a fault of code that only a GPU runs.
    pub enum Check as "check of a kernel's PTX" {
        /// The order and the operands of instructions.
        Order = "order",
        /// What the instructions compute.
        Arithmetic = "arithmetic",
    }
}

/// A fault on purpose of code that only a GPU runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuFault {
    /// Its name, unique among these and the mutants.
    pub name: &'static str,
    /// What must see it.
    pub check: Check,
    /// Strategies whose kernels have it. An empty list is any.
    pub strategies: Vec<Strategy>,
    /// Architectures for which it is compiled. An empty list is any.
    pub architectures: Vec<Architecture>,
    /// What it is, in a few words.
    pub text: &'static str,
}

impl GpuFault {
    /// Every one, in the order of files and lines.
    ///
    /// # Errors
    /// When a row of `cuda/faults/gpu` says what is not known.
    pub fn all() -> Result<Vec<Self>, MutantError> {
        GPU_FAULTS.iter().map(Self::read).collect()
    }

    /// What chooses it in a kernel.
    pub fn number(&self) -> u32 {
        mutant_number(self.name)
    }

    fn read(&Fault { file, name, when, text, .. }: &Fault) -> Result<Self, MutantError> {
        let file = format!("cuda/{file}");
        let unknown =
            |word: &str| MutantError::UnknownWord { file: file.clone(), name: name.to_owned(), word: word.to_owned() };
        let (mut check, mut strategies, mut architectures) = (None, Vec::new(), Vec::new());
        for word in when.split_whitespace() {
            let read = match word.split_once('=') {
                Some(("check", value)) => value.parse().ok().map(|value| check = Some(value)),
                Some(("strategy", values)) => list(values).map(|values| strategies = values),
                Some(("architecture", values)) => {
                    let read = values.split(',').map(Architecture::parse).collect::<Option<_>>();
                    read.map(|values| architectures = values)
                }
                _ => None,
            };
            read.ok_or_else(|| unknown(word))?;
        }
        let check = check.ok_or_else(|| unknown(when))?;
        Ok(Self { name, check, strategies, architectures, text })
    }
}

/// The number of a mutant's name, as `cuda/faults/hooks.cuh` computes it: FNV-1a, 32 bits.
pub const fn mutant_number(name: &str) -> u32 {
    let bytes = name.as_bytes();
    let mut hash = 2_166_136_261_u32;
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u32).wrapping_mul(16_777_619);
        i += 1;
    }
    hash
}

named! {
    /// What a mutant breaks, as tables sort it.
    pub enum Kind as "kind of mutant" {
        /// The order, scope or width of an access of the protocol.
        Ordering = "ordering",
        /// A barrier inside a block or a warp.
        Barrier = "barrier",
        /// Tickets, epochs, workspaces: the protocol between tiles and launches.
        Protocol = "protocol",
        /// What is computed.
        Algorithm = "algorithm",
        /// Nothing: it must not be reported.
        Harmless = "harmless",
    }
}

named! {
    /// What a run must have beside strategy and configuration, so that the fault can show.
    pub enum Need as "need of a mutant" {
        /// Launches at the largest epoch, and after it.
        Wrap = "wrap",
        /// More than one launch of a workspace.
        Relaunch = "relaunch",
        /// Launches with the arguments of the first, as a replayed graph has them.
        Frozen = "frozen",
        /// Blocks that start in reverse order.
        Reverse = "reverse",
        /// The output in place of the input.
        InPlace = "in-place",
        /// Input or output off the 16-byte boundary.
        Misaligned = "misaligned",
        /// A last tile that is not full.
        Partial = "partial",
        /// An operator that is not commutative.
        NonCommutative = "non-commutative",
        /// More tiles than a look-back window has, and no prefix within it.
        Windows = "windows",
        /// Blocks of more than 256 threads: of more than 8 warps, or more than 16.
        WideBlocks = "wide-blocks",
        /// Launches of which the next one's blocks are there before the one before is over.
        Together = "together",
        /// A matrix two columns wide.
        Narrow = "narrow",
        /// Runs, or segments between offsets, of one element on average.
        ShortSegments = "short-segments",
        /// Elements of which the device alone knows how many there are.
        Counted = "counted",
        /// Tiles that are dealt to several ranks.
        Ranks = "ranks",
        /// A launch that ends in the middle, and another behind it.
        Abort = "abort",
        /// Two launches at one time.
        Overlap = "overlap",
    }
}

/// Where a mutant can show at all. An empty list is any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct When {
    /// Strategies whose kernels reach it.
    pub strategies: Vec<Strategy>,
    /// Descriptor layouts that reach it.
    pub layouts: Vec<Descriptor>,
    /// Scan patterns that reach it.
    pub patterns: Vec<Pattern>,
    /// Compositions that reach it.
    pub compositions: Vec<Composition>,
    /// Element types that reach it.
    pub elements: Vec<ElementType>,
    /// Values a thread at which it can show.
    pub vts: Vec<u32>,
    /// Modes that reach it.
    pub modes: Vec<Mode>,
    /// Problems other than the plain scan that reach it, by the laboratory's names, or `all` of them. An empty list is the
    /// plain scan, or whichever is asked for.
    pub problems: Vec<String>,
    /// What else it takes.
    pub needs: Vec<Need>,
}

impl When {
    /// Whether the mutant needs it.
    pub fn needs(&self, need: Need) -> bool {
        self.needs.contains(&need)
    }
}

/// A fault on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    /// Its name, unique.
    pub name: String,
    /// What it breaks.
    pub kind: Kind,
    /// The rule that it follows from; `None` where somebody thought of it.
    pub rule: Option<&'static str>,
    /// Where it can show.
    pub when: When,
    /// What it is, in a few words.
    pub text: String,
    /// The file of its first edit, below the repository's root.
    pub file: String,
    /// The line of that edit, from 1.
    pub line: u32,
}

/// A fault that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MutantError {
    /// A word of `when` that is not known.
    #[error("the fault '{name}' of {file}: '{word}' is not known in \"when\"; docs/stress.md lists what is")]
    UnknownWord { file: String, name: String, word: String },
    /// A fault without a kind.
    #[error("the fault '{name}' of {file} says no kind: begin its \"when\" with kind=…")]
    NoKind { file: String, name: String },
    /// Two faults of one name.
    #[error("there are two faults '{name}'; the second one is of {file}")]
    Twice { file: String, name: String },
    /// A name that no fault has.
    #[error("there is no mutant '{name}'; `lookback stress --list-mutants` lists them")]
    Unknown { name: String },
    /// A word that names no fault.
    #[error(
        "'{word}' names no fault: give names of faults, kernel files, folders or rules; `lookback stress --list-mutants` \
        lists them"
    )]
    NoneOf { word: String },
}

impl Mutant {
    /// Every mutant, in the order of files and lines, then those of the host.
    ///
    /// # Errors
    /// When a row of `cuda/faults` says what is not known.
    pub fn all() -> Result<&'static [Self], MutantError> {
        static ALL: OnceLock<Result<Vec<Mutant>, MutantError>> = OnceLock::new();
        match ALL.get_or_init(|| read(FAULTS)) {
            Ok(mutants) => Ok(mutants),
            Err(error) => Err(error.clone()),
        }
    }

    /// The mutant of a name.
    ///
    /// # Errors
    /// When there is none, or as [`Self::all`].
    pub fn named(name: &str) -> Result<&'static Self, MutantError> {
        let found = Self::all()?.iter().find(|mutant| mutant.name == name);
        found.ok_or_else(|| MutantError::Unknown { name: name.to_owned() })
    }

    /// What chooses it in a kernel; 0 for the mutants of the host, which leave the kernels as they are.
    pub fn number(&self) -> u32 {
        if self.is_of_host() { 0 } else { mutant_number(&self.name) }
    }

    /// Whether the fault is in what the host does with a workspace and not in a kernel.
    pub fn is_of_host(&self) -> bool {
        self.when.needs(Need::Abort) || self.when.needs(Need::Overlap)
    }

    /// Whether it must not be reported.
    pub fn is_harmless(&self) -> bool {
        self.kind == Kind::Harmless
    }
}

impl FromStr for &'static Mutant {
    type Err = MutantError;

    fn from_str(name: &str) -> Result<Self, MutantError> {
        Mutant::named(name)
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.name)
    }
}

/// The fault of a host that launches behind a launch which ended in its middle.
pub const RELAUNCH_AFTER_ABORT: &str = "relaunch_after_abort";
/// The fault of a host that lets two streams share a workspace.
pub const ONE_WORKSPACE: &str = "one_workspace_on_two_streams";

/// The name, the mutant's `when` and its text, of the faults that a host can make around kernels that are right.
const OF_HOST: [(&str, &str, &str); 2] = [
    (
        RELAUNCH_AFTER_ABORT,
        "kind=protocol need=abort",
        "a launch behind one that ended in the middle, on a workspace that nobody cleaned",
    ),
    (ONE_WORKSPACE, "kind=protocol need=overlap", "a launch in the middle of another on the same workspace"),
];

fn read(faults: &[Fault]) -> Result<Vec<Mutant>, MutantError> {
    let of_kernels = faults
        .iter()
        .map(|fault| (format!("cuda/{}", fault.file), fault.line, fault.name, fault.rule, fault.when, fault.text));
    // They are in no kernel: this file stands for them.
    let of_host = OF_HOST.into_iter().map(|(name, when, text)| (file!().to_owned(), 1, name, None, when, text));
    let mut mutants: Vec<Mutant> = Vec::new();
    for (file, line, name, rule, when, text) in of_kernels.chain(of_host) {
        if mutants.iter().any(|mutant| mutant.name == name) {
            return Err(MutantError::Twice { file, name: name.to_owned() });
        }
        let (kind, mut when) = parse_when(when, &file, name)?;
        // Whoever scans a problem can reach a fault of it, and is asked for when a case is drawn.
        if when.strategies.is_empty() && when.problems.is_empty() {
            when.strategies = usual_strategies(kind, &when, rule.map(|_| file.as_str()));
            // A file that no strategy includes, such as that of the copy, has nothing to do with a scan.
            if rule.is_some() && when.strategies.is_empty() {
                continue;
            }
        }
        mutants.push(Mutant { name: name.to_owned(), kind, rule, when, text: text.to_owned(), file, line });
    }
    Ok(mutants)
}

fn parse_when(text: &str, file: &str, name: &str) -> Result<(Kind, When), MutantError> {
    let unknown =
        |word: &str| MutantError::UnknownWord { file: file.to_owned(), name: name.to_owned(), word: word.to_owned() };
    let mut kind = None;
    let mut when = When::default();
    for word in text.split_whitespace() {
        let (key, values) = word.split_once('=').ok_or_else(|| unknown(word))?;
        match key {
            "kind" => kind = values.parse().map(Some).map_err(|_| unknown(word))?,
            "strategy" => when.strategies = list(values).ok_or_else(|| unknown(word))?,
            "layout" => when.layouts = list(values).ok_or_else(|| unknown(word))?,
            "pattern" => when.patterns = list(values).ok_or_else(|| unknown(word))?,
            "composition" => when.compositions = list(values).ok_or_else(|| unknown(word))?,
            "type" => when.elements = list(values).ok_or_else(|| unknown(word))?,
            "vt" => when.vts = list(values).ok_or_else(|| unknown(word))?,
            "mode" => when.modes = list(values).ok_or_else(|| unknown(word))?,
            "problem" => when.problems = values.split(',').map(str::to_owned).collect(),
            "need" => when.needs = list(values).ok_or_else(|| unknown(word))?,
            _ => return Err(unknown(word)),
        }
    }
    let kind = kind.ok_or_else(|| MutantError::NoKind { file: file.to_owned(), name: name.to_owned() })?;
    Ok((kind, when))
}

/// The strategies that reach a fault which names none; empty is any. `derived_in` is the kernel file of one by rule: those
/// reach it whose kernels include it.
fn usual_strategies(kind: Kind, when: &When, derived_in: Option<&str>) -> Vec<Strategy> {
    let all = || Strategy::ALL.iter().copied();
    let reads = |strategy: Strategy, file: &str| {
        let config = ScanConfig::default();
        let plan = Plan::new(&ScanRequest::aligned(Instance::SUM_OF_WORDS, strategy, Mode::Inclusive, config, 1 << 16));
        let begins = format!("#line 1 \"{file}\"\n");
        let is_in = |kernel| scan_source(kernel).is_ok_and(|source| source.contains(&begins));
        plan.is_ok_and(|plan| plan.steps.iter().any(|step| is_in(step.kernel)))
    };
    // A layout or an epoch is only there where each tile has a block and a descriptor.
    let has_protocol = |row: &StrategyRow| row.shape.has_descriptors && row.shape.blocks == Blocks::PerTile;
    match derived_in {
        Some(file) => all().filter(|&strategy| reads(strategy, file)).collect(),
        None if !when.layouts.is_empty() || matches!(kind, Kind::Protocol | Kind::Ordering | Kind::Harmless) => {
            all().filter(|strategy| has_protocol(strategy.row())).collect()
        }
        None => Vec::new(),
    }
}

fn list<T: FromStr>(values: &str) -> Option<Vec<T>> {
    values.split(',').map(|value| value.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_hold_the_mutants_that_are_promised() {
        let mutants = Mutant::all().expect("every hook can be read");
        let harmful = mutants.iter().filter(|mutant| !mutant.is_harmless()).count();
        let harmless = mutants.len() - harmful;
        assert!(harmful >= 24 && harmless >= 5, "{harmful} mutants, {harmless} harmless");
        let of_gpu = GpuFault::all().expect("every row can be read");
        assert!(of_gpu.len() >= 40, "{}", of_gpu.len());
        for (index, fault) in of_gpu.iter().enumerate() {
            assert!(of_gpu[..index].iter().all(|other| other.number() != fault.number()), "{}", fault.name);
            assert!(mutants.iter().all(|mutant| mutant.number() != fault.number()), "{}", fault.name);
        }
        for (index, mutant) in mutants.iter().enumerate() {
            let numbers = mutants[..index].iter().filter(|other| !other.is_of_host());
            assert!(numbers.clone().all(|other| other.number() != mutant.number()), "{mutant}");
        }
        assert!(Mutant::named("no such mutant").is_err());
    }

    #[test]
    fn a_strategy_without_its_waiting_is_a_mutant_of_its_own_kernel() {
        let mut found = 0;
        for &strategy in Strategy::ALL {
            let Some(name) = strategy.row().fault_without_waiting else { continue };
            let mutant = Mutant::named(name).expect("the kernels hold it");
            assert_eq!((&mutant.when.strategies[..], mutant.kind), (&[strategy][..], Kind::Algorithm), "{name}");
            found += 1;
        }
        assert_ne!(found, 0);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let fault = |name, when| Fault { file: "a.cuh", line: 2, name, rule: None, when, text: "t" };
        let fails = |when| read(&[fault("a", when)]).expect_err(when);
        let is_unknown = |error| matches!(error, MutantError::UnknownWord { name, .. } if name == "a");
        assert!(is_unknown(fails("kind=ordering shape=round")));
        assert!(is_unknown(fails("kind=ordering need=luck")));
        assert!(is_unknown(fails("barrier")));
        assert!(matches!(fails("strategy=lookback"), MutantError::NoKind { .. }));
        let of_gpu = |when| GpuFault::read(&fault("a", when));
        assert!(is_unknown(of_gpu("check=luck").expect_err("no such check")));
        assert!(is_unknown(of_gpu("check=order architecture=9").expect_err("no compute capability")));
        assert!(is_unknown(of_gpu("strategy=lookback").expect_err("no check at all")));
        let read_whole = of_gpu("check=order strategy=chained architecture=7.5,9.0").expect("well formed");
        assert_eq!((read_whole.check, &read_whole.strategies[..]), (Check::Order, &[Strategy::Chained][..]));
        assert_eq!(read_whole.architectures, [Architecture { major: 7, minor: 5 }, Architecture::HOPPER]);
        let twice = read(&[fault("a", "kind=barrier"), fault("a", "kind=barrier")]);
        assert!(matches!(twice, Err(MutantError::Twice { .. })));
        let read_one = |when| read(&[fault("a", when)]).expect("well formed").remove(0);
        let read = read(&[fault("a", "kind=barrier need=wrap,windows strategy=lookback")]).expect("well formed");
        assert_eq!((read[0].kind, read[0].file.as_str(), read[0].line), (Kind::Barrier, "cuda/a.cuh", 2));
        assert_eq!(read[0].when.needs, [Need::Wrap, Need::Windows]);
        // Who can scan a problem is asked for when a case is drawn, also of what only some strategies have in plain scans.
        let of_problem = read_one("kind=protocol problem=rows,offsets need=wrap need=windows");
        assert_eq!(
            (&of_problem.when.strategies[..], &of_problem.when.problems[..]),
            (&[][..], &["rows", "offsets"].map(str::to_owned)[..])
        );
        assert_eq!(of_problem.when.needs, [Need::Windows], "the last of a key counts");
    }
}
