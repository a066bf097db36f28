//! One reproducible run on the CPU device, as text and drawn from a seed.

use crate::abi;
use crate::cpu::{BlockOrder, Pause};
use crate::element::{ElementType, Instance, Operator};
use crate::kernels::mutant::{Kind, Mutant, Need, OPERATORS_WITH_MUTANTS};
use crate::strategy::plan::{Plan, ScanRequest};
use crate::strategy::{Composition, Descriptor, Mode, Pattern, ScanConfig, Strategy, TileOrder};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a load may return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// The last value stored: every interleaving is one of sequential consistency.
    Strong,
    /// Any store that the thread's view does not rule out; plain accesses are checked for races.
    Weak,
}

impl Memory {
    /// The word in a case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strong => "strong",
            Self::Weak => "weak",
        }
    }
}

/// What the descriptors hold before the first launch. No tag is of an epoch that is about to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceStart {
    /// Zeros, as a workspace is made.
    Zeros,
    /// Random words.
    Random,
    /// All bits set.
    Ones,
    /// Descriptors as launches of earlier epochs left them.
    Earlier,
}

/// Something that happens in the middle of the first launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disturbance {
    /// Nothing.
    None,
    /// A block stands still from its k-th scheduling point on, for so many switches of the others.
    Pause {
        /// The block.
        block: u64,
        /// k
        after_points: u64,
        /// How long.
        switches: u64,
    },
    /// A block never runs on after its k-th scheduling point; then the workspace is cleaned.
    Kill {
        /// The block.
        block: u64,
        /// k
        after_points: u64,
    },
    /// The launch ends after its k-th scheduling point; then the workspace is cleaned.
    Abort {
        /// k
        after_points: u64,
    },
    /// Another launch runs at the k-th access of the protocol, on a workspace of its own.
    Overlap {
        /// k
        after_accesses: u64,
    },
}

impl Disturbance {
    /// A word for it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Pause { .. } => "pause",
            Self::Kill { .. } => "kill",
            Self::Abort { .. } => "abort",
            Self::Overlap { .. } => "overlap",
        }
    }
}

/// One run: a few launches of one scan on one workspace. The text form reproduces it.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The fault that the kernels have, if any.
    pub mutant: Option<&'static Mutant>,
    /// What loads may return.
    pub memory: Memory,
    /// Everything random in the run is drawn from it.
    pub seed: u64,
    /// What is scanned, how, and how much.
    pub request: ScanRequest,
    /// Blocks that may be started and not ended at one time.
    pub resident_blocks: u32,
    /// In which order blocks start.
    pub block_order: BlockOrder,
    /// Probability in percent that a scheduling point switches to another warp; `None` is round robin.
    pub preemption: Option<u32>,
    /// Whether plain and shared accesses are scheduling points too.
    pub plain_points: bool,
    /// Launches, one after the other; those behind the first have sizes of their own up to that of the first.
    pub launches: u32,
    /// Launches that the workspace claims to have completed before.
    pub completed_epochs: u32,
    /// What its descriptors hold.
    pub workspace: WorkspaceStart,
    /// What happens in the middle of the first launch.
    pub disturbance: Disturbance,
}

/// Text that is no case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaseError {
    /// Something in the text is not as `Display` writes it.
    #[error("'{part}' in a case: {fault}")]
    Part {
        /// Which.
        part: String,
        /// Why.
        fault: String,
    },
    /// Something is missing.
    #[error("a case needs {key}=…")]
    Missing {
        /// Which.
        key: &'static str,
    },
    /// The scan cannot be launched so.
    #[error(transparent)]
    Config(#[from] crate::strategy::ConfigError),
    /// No such mutant.
    #[error(transparent)]
    Mutant(#[from] super::MutantError),
}

/// Draws numbers and choices.
pub(super) struct Draw(Pcg64Mcg);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// Below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Whether an event of this probability in percent happens.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of some choices, at least one.
    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// A random word.
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }
}

impl Case {
    /// A run that could show the mutant, or any run of the kernels as they are: at least 8 tiles and 2 warps a
    /// block in the strategies with tiles. One seed, one case.
    pub fn draw(mutant: Option<&'static Mutant>, memory: Memory, seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        loop {
            // Some draws cannot be launched (a descriptor too small, say): draw on. That a mutant's `when` leaves
            // something to draw was seen when its hook was read.
            if let Some(case) = Self::draw_once(mutant, memory, seed, &mut draw) {
                return case;
            }
        }
    }

    /// Whether anything can be drawn at all where a mutant says that it can show.
    pub fn can_draw(mutant: &'static Mutant) -> bool {
        const ATTEMPTS: usize = 1000;
        let mut draw = Draw::new(0);
        (0..ATTEMPTS).any(|_| Self::draw_once(Some(mutant), Memory::Strong, 0, &mut draw).is_some())
    }

    fn draw_once(mutant: Option<&'static Mutant>, memory: Memory, seed: u64, draw: &mut Draw) -> Option<Self> {
        let when = mutant.map(|mutant| mutant.when.clone()).unwrap_or_default();
        let needs = |need| when.needs.contains(&need);
        let one_of = |draw: &mut Draw, wanted: &[Strategy], all: &[Strategy]| {
            draw.of(if wanted.is_empty() { all } else { wanted })
        };
        // Of 57 cases, for example, 20 are of look-back.
        const SHARES: [(Strategy, usize); 12] = [
            (Strategy::Lookback, 20),
            (Strategy::Chained, 8),
            (Strategy::ReduceThenScan, 4),
            (Strategy::ScanThenPropagate, 4),
            (Strategy::HillisSteele, 1),
            (Strategy::Blelloch, 1),
            (Strategy::Naive, 1),
            (Strategy::Sequential, 1),
            (Strategy::SingleBlock, 1),
            (Strategy::OneWave, 6),
            (Strategy::Lookahead, 8),
            (Strategy::SingleCluster, 2),
        ];
        let shares: Vec<Strategy> =
            SHARES.iter().flat_map(|&(strategy, share)| std::iter::repeat_n(strategy, share)).collect();
        let strategy = one_of(draw, &when.strategies, &shares);
        let instance = draw_instance(draw, mutant.is_some(), needs(Need::NonCommutative), &when.layouts)?;
        let bytes = instance.element().bytes();
        let mode = match when.modes.as_slice() {
            [] if instance.element().is_integer() && instance.operator() == Operator::Sum => draw.of(Mode::ALL),
            [] => draw.of(&[Mode::Inclusive, Mode::Exclusive]),
            modes => draw.of(modes),
        };
        let layouts: &[Descriptor] = match bytes {
            0..=4 => &[Descriptor::Packed64, Descriptor::Packed128, Descriptor::Split],
            5..=8 => &[Descriptor::Packed128, Descriptor::Split],
            _ => &[Descriptor::Split],
        };
        let descriptor = draw.of(if when.layouts.is_empty() { layouts } else { &when.layouts });
        let pattern = match when.patterns.as_slice() {
            [] if draw.percent(60) => Pattern::Shuffle,
            [] => draw.of(Pattern::ALL),
            patterns => draw.of(patterns),
        };
        let composition = match when.compositions.as_slice() {
            [] if pattern == Pattern::Shuffle => {
                draw.of(&[Composition::ScanThenPropagate, Composition::ReduceThenScan])
            }
            [] => draw.of(Composition::ALL),
            compositions => draw.of(compositions),
        };
        // A warp of one-wave reads 256 descriptors at once, whoever is resident; look-back has a second window only
        // where more than 32 tiles have no prefix yet.
        let rounds = strategy == Strategy::OneWave && (needs(Need::Windows) || draw.percent(1));
        // A cluster takes a second round then.
        let looks_back = matches!(strategy, Strategy::Lookback | Strategy::Lookahead);
        let windows = !rounds && (needs(Need::Windows) || (looks_back && draw.percent(6)));
        let block_threads = if windows { 64 } else { draw.of(&[64, 64, 64, 96, 128]) };
        let vt = draw.of(if needs(Need::Misaligned) { &[2, 4, 8] } else { &[1, 1, 2, 2, 3, 4, 4, 6, 8] });
        // Work that grows with the square of the elements.
        let (vt, block_threads) = if strategy == Strategy::Naive || rounds { (1, 64) } else { (vt, block_threads) };
        let tile = u64::from(vt * block_threads);
        let tiles = match () {
            () if rounds => 258 + draw.below(8),
            () if windows => 36 + draw.below(16),
            () if mutant.is_none() && draw.percent(6) => 13 + draw.below(24),
            () => 8 + draw.below(5),
        };
        let boundary = ScanRequest::offsets_that_matter(strategy);
        let places = u64::from(boundary) / bytes as u64;
        let lead = if needs(Need::Misaligned) || draw.percent(25) { draw.below(places) as u32 } else { 0 };
        let output_lead = if needs(Need::Misaligned) || draw.percent(25) { draw.below(places) as u32 } else { 0 };
        let n = match draw.below(4) {
            // Round a tile boundary, or anywhere in the last tile.
            0 if !needs(Need::Partial) => tiles * tile,
            1 => tiles * tile - 1,
            2 => (tiles - 1) * tile + 1,
            _ => (tiles - 1) * tile + 1 + draw.below(tile - 1),
        };
        let in_place = needs(Need::InPlace) || (strategy != Strategy::Naive && draw.percent(30));
        let input_offset = lead * bytes as u32;
        let request = ScanRequest {
            instance,
            strategy,
            mode,
            config: ScanConfig {
                vt,
                block_threads,
                pattern,
                composition,
                descriptor: strategy.is_single_pass().then_some(descriptor),
                tile_order: TileOrder::Ticket,
            },
            n,
            in_place,
            input_offset,
            output_offset: if in_place { input_offset } else { output_lead * bytes as u32 },
        };

        let kind = mutant.map(|mutant| mutant.kind);
        let plain_points =
            kind == Some(Kind::Barrier) || needs(Need::InPlace) || (mutant.is_none() && draw.percent(10));
        let launches = match () {
            () if needs(Need::Wrap) => 2 + draw.below(2) as u32,
            () if needs(Need::Relaunch) || needs(Need::Frozen) || needs(Need::Abort) => 2,
            () => draw.of(&[1, 1, 2]),
        };
        let wraps = needs(Need::Wrap) || (mutant.is_none() && launches > 1 && draw.percent(20));
        let completed_epochs = if wraps {
            abi::LOOKBACK_MAXIMUM_EPOCH - 1
        } else if needs(Need::Frozen) {
            0
        } else {
            draw.of(&[0, 0, 1, 5, 1 << 20])
        };
        let workspace = if needs(Need::Wrap) {
            WorkspaceStart::Earlier
        } else {
            draw.of(&[WorkspaceStart::Zeros, WorkspaceStart::Random, WorkspaceStart::Ones, WorkspaceStart::Earlier])
        };
        let reverse = needs(Need::Reverse);
        let resident_blocks = if windows {
            tiles as u32
        } else if reverse {
            draw.of(&[1, 2, 3])
        } else {
            draw.of(&[1, 2, 3, 4, 6, 8])
        };
        let block_order = if reverse {
            BlockOrder::Reverse
        } else {
            draw.of(&[BlockOrder::InOrder, BlockOrder::Reverse, BlockOrder::Random])
        };
        // Blocks that take one tile after the other are few.
        let block = draw.below(if strategy == Strategy::Lookahead { 6 } else { tiles });
        let after_points = draw.below(40);
        let disturbance = match () {
            // A block of a cluster may be paused: the others wait for it.
            () if strategy == Strategy::SingleCluster && draw.percent(30) => {
                Disturbance::Pause { block: draw.below(8), after_points, switches: 1 + draw.below(3000) }
            }
            () if !strategy.is_single_pass() => Disturbance::None,
            () if needs(Need::Abort) => Disturbance::Abort { after_points: 5 + draw.below(200) },
            () if needs(Need::Overlap) => Disturbance::Overlap { after_accesses: draw.below(40) },
            () if windows => Disturbance::Pause { block: 0, after_points: 1, switches: 20_000 },
            () if kind == Some(Kind::Protocol) => Disturbance::None,
            () => match draw.below(20) {
                0..=4 => Disturbance::Pause { block, after_points, switches: 1 + draw.below(3000) },
                5 if mutant.is_none() => Disturbance::Kill { block, after_points },
                6 if mutant.is_none() => Disturbance::Abort { after_points: draw.below(400) },
                7 if mutant.is_none() && memory == Memory::Strong => {
                    Disturbance::Overlap { after_accesses: draw.below(60) }
                }
                _ => Disturbance::None,
            },
        };
        let preemption = match disturbance {
            Disturbance::None if memory == Memory::Strong && draw.percent(10) && !plain_points => None,
            _ => Some(draw.of(&[0, 5, 20, 50, 100])),
        };
        let case = Self {
            mutant,
            memory,
            seed,
            request,
            resident_blocks,
            block_order,
            preemption,
            plain_points,
            launches,
            completed_epochs,
            workspace,
            disturbance,
        };
        Plan::new(&case.request).is_ok().then_some(case)
    }

    /// Tiles of the first launch, had the strategy any.
    pub fn tiles(&self) -> u64 {
        self.request.n.div_ceil(self.tile_elements()).max(1)
    }

    /// Tiles of a launch of `n` elements; 0 in strategies without tiles.
    pub(super) fn tiles_of(&self, n: u64) -> u64 {
        let has_tiles = matches!(
            self.request.strategy,
            Strategy::ScanThenPropagate
                | Strategy::ReduceThenScan
                | Strategy::Chained
                | Strategy::Lookback
                | Strategy::OneWave
                | Strategy::Lookahead
                | Strategy::SingleCluster
        );
        if has_tiles { n.div_ceil(self.tile_elements()) } else { 0 }
    }

    fn tile_elements(&self) -> u64 {
        u64::from(self.request.config.vt) * u64::from(self.request.config.block_threads)
    }

    /// Elements of a launch behind the first: most often of at least 8 tiles too.
    pub(super) fn later_size(&self, draw: &mut Draw) -> u64 {
        let n = self.request.n;
        let fewest = (super::cpu::MINIMUM_TILES - 1) * self.tile_elements();
        let below = if self.mutant.is_none() && draw.percent(75) { fewest.min(n - 1) } else { 0 };
        below + 1 + draw.below(n - below)
    }

    /// The pause of the first launch, if there is one.
    pub(super) fn pause(&self) -> Option<Pause> {
        match self.disturbance {
            Disturbance::Pause { block, after_points, switches } => Some(Pause { block, after_points, switches }),
            _ => None,
        }
    }
}

fn draw_instance(draw: &mut Draw, has_mutant: bool, non_commutative: bool, layouts: &[Descriptor]) -> Option<Instance> {
    let holds = |element: ElementType| match layouts {
        [] => true,
        layouts => layouts.iter().any(|layout| match layout {
            Descriptor::Packed64 => element.bytes() <= 4,
            Descriptor::Packed128 => element.bytes() <= 8,
            Descriptor::Split => true,
        }),
    };
    let own: Vec<Instance> = OPERATORS_WITH_MUTANTS
        .iter()
        .filter(|(element, operator)| holds(*element) && !(non_commutative && operator.is_commutative()))
        .filter_map(|&(element, operator)| Instance::new(element, operator).ok())
        .collect();
    if has_mutant || non_commutative || draw.percent(60) {
        return (!own.is_empty()).then(|| draw.of(&own));
    }
    // Every other pair, but for sums of floats: they have no exact reference.
    let all: Vec<Instance> = Instance::all().filter(|instance| !instance.is_rounded()).collect();
    Some(draw.of(&all))
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScanRequest { instance, strategy, mode, config, n, in_place, input_offset, output_offset } = &self.request;
        let mutant = self.mutant.map_or("none", |mutant| mutant.name.as_str());
        let memory = self.memory.name();
        let layout = config.descriptor.map_or("none", Descriptor::name);
        write!(formatter, "mutant={mutant},memory={memory},seed={},strategy={strategy}", self.seed)?;
        write!(formatter, ",type={},operator={},mode={mode}", instance.element(), instance.operator())?;
        write!(formatter, ",layout={layout},pattern={},composition={}", config.pattern, config.composition)?;
        write!(formatter, ",order={},vt={},threads={},n={n}", config.tile_order, config.vt, config.block_threads)?;
        write!(formatter, ",in-place={in_place},input-offset={input_offset},output-offset={output_offset}")?;
        write!(formatter, ",resident={},blocks={}", self.resident_blocks, block_order_name(self.block_order))?;
        match self.preemption {
            Some(percent) => write!(formatter, ",preemption={percent}")?,
            None => formatter.write_str(",preemption=fair")?,
        }
        write!(formatter, ",plain-points={},launches={}", self.plain_points, self.launches)?;
        write!(formatter, ",epochs={},workspace={}", self.completed_epochs, workspace_name(self.workspace))?;
        match self.disturbance {
            Disturbance::None => Ok(()),
            Disturbance::Pause { block, after_points, switches } => {
                write!(formatter, ",pause={block}:{after_points}:{switches}")
            }
            Disturbance::Kill { block, after_points } => write!(formatter, ",kill={block}:{after_points}"),
            Disturbance::Abort { after_points } => write!(formatter, ",abort={after_points}"),
            Disturbance::Overlap { after_accesses } => write!(formatter, ",overlap={after_accesses}"),
        }
    }
}

const BLOCK_ORDERS: [(BlockOrder, &str); 3] =
    [(BlockOrder::InOrder, "in-order"), (BlockOrder::Reverse, "reverse"), (BlockOrder::Random, "random")];

pub(super) fn block_order_name(order: BlockOrder) -> &'static str {
    BLOCK_ORDERS.iter().find(|(other, _)| *other == order).map_or("in-order", |(_, name)| name)
}

const WORKSPACES: [(WorkspaceStart, &str); 4] = [
    (WorkspaceStart::Zeros, "zeros"),
    (WorkspaceStart::Random, "random"),
    (WorkspaceStart::Ones, "ones"),
    (WorkspaceStart::Earlier, "earlier"),
];

pub(super) fn workspace_name(start: WorkspaceStart) -> &'static str {
    WORKSPACES.iter().find(|(other, _)| *other == start).map_or("zeros", |(_, name)| name)
}

/// The parts of a text, taken out one by one.
struct Parts<'a>(Vec<(&'a str, &'a str)>);

impl Parts<'_> {
    fn optional<T: FromStr<Err: fmt::Display>>(&mut self, key: &str) -> Result<Option<T>, CaseError> {
        let Some(position) = self.0.iter().position(|(other, _)| *other == key) else { return Ok(None) };
        let (key, value) = self.0.swap_remove(position);
        let part = || format!("{key}={value}");
        value.parse().map(Some).map_err(|error: T::Err| CaseError::Part { part: part(), fault: error.to_string() })
    }

    fn take<T: FromStr<Err: fmt::Display>>(&mut self, key: &'static str) -> Result<T, CaseError> {
        self.optional(key)?.ok_or(CaseError::Missing { key })
    }

    fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(T, &str)]) -> Result<T, CaseError> {
        let word: String = self.take(key)?;
        let found = choices.iter().find(|(_, name)| *name == word).map(|(choice, _)| *choice);
        let names = || choices.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| CaseError::Part { part: format!("{key}={word}"), fault: format!("one of {}", names()) })
    }

    /// Numbers between colons.
    fn numbers<const N: usize>(&mut self, key: &'static str) -> Result<Option<[u64; N]>, CaseError> {
        let Some(text) = self.optional::<String>(key)? else { return Ok(None) };
        let fault = || CaseError::Part { part: format!("{key}={text}"), fault: format!("{N} numbers between colons") };
        let numbers = text.split(':').map(|word| word.parse().map_err(|_| fault())).collect::<Result<Vec<u64>, _>>()?;
        numbers.try_into().map(Some).map_err(|_| fault())
    }
}

impl FromStr for Case {
    type Err = CaseError;

    fn from_str(text: &str) -> Result<Self, CaseError> {
        let part = |part: &str| CaseError::Part { part: part.to_owned(), fault: "not key=value".to_owned() };
        let pairs = text.trim().split(',').map(|word| word.split_once('=').ok_or_else(|| part(word)));
        let mut parts = Parts(pairs.collect::<Result<_, _>>()?);
        let mutant: String = parts.take("mutant")?;
        let mutant = if mutant == "none" { None } else { Some(Mutant::named(&mutant)?) };
        let memory = parts.choice("memory", &[(Memory::Strong, "strong"), (Memory::Weak, "weak")])?;
        let instance = Instance::new(parts.take::<ElementType>("type")?, parts.take::<Operator>("operator")?)
            .map_err(crate::strategy::ConfigError::from)?;
        let layout: String = parts.take("layout")?;
        let descriptor = if layout == "none" {
            None
        } else {
            let fault = |error: crate::strategy::UnknownName| CaseError::Part {
                part: format!("layout={layout}"),
                fault: error.to_string(),
            };
            Some(layout.parse::<Descriptor>().map_err(fault)?)
        };
        let preemption: String = parts.take("preemption")?;
        let preemption = match preemption.as_str() {
            "fair" => None,
            word => match word.parse() {
                Ok(percent @ 0..=100) => Some(percent),
                _ => {
                    return Err(CaseError::Part {
                        part: format!("preemption={word}"),
                        fault: "fair, or 0 to 100 percent".to_owned(),
                    });
                }
            },
        };
        let mut disturbance = Disturbance::None;
        if let Some([block, after_points, switches]) = parts.numbers("pause")? {
            disturbance = Disturbance::Pause { block, after_points, switches };
        }
        if let Some([block, after_points]) = parts.numbers("kill")? {
            disturbance = Disturbance::Kill { block, after_points };
        }
        if let Some([after_points]) = parts.numbers("abort")? {
            disturbance = Disturbance::Abort { after_points };
        }
        if let Some([after_accesses]) = parts.numbers("overlap")? {
            disturbance = Disturbance::Overlap { after_accesses };
        }
        let case = Self {
            mutant,
            memory,
            seed: parts.take("seed")?,
            request: ScanRequest {
                instance,
                strategy: parts.take("strategy")?,
                mode: parts.take("mode")?,
                config: ScanConfig {
                    vt: parts.take("vt")?,
                    block_threads: parts.take("threads")?,
                    pattern: parts.take("pattern")?,
                    composition: parts.take("composition")?,
                    descriptor,
                    tile_order: parts.take("order")?,
                },
                n: parts.take("n")?,
                in_place: parts.take("in-place")?,
                input_offset: parts.take("input-offset")?,
                output_offset: parts.take("output-offset")?,
            },
            resident_blocks: parts.take("resident")?,
            block_order: parts.choice("blocks", &BLOCK_ORDERS)?,
            preemption,
            plain_points: parts.take("plain-points")?,
            launches: parts.take("launches")?,
            completed_epochs: parts.take("epochs")?,
            workspace: parts.choice("workspace", &WORKSPACES)?,
            disturbance,
        };
        if let Some((key, value)) = parts.0.first() {
            return Err(CaseError::Part { part: format!("{key}={value}"), fault: "not a part of a case".to_owned() });
        }
        case.check()?;
        Ok(case)
    }
}

impl Case {
    /// What a text could ask for that no run can have.
    fn check(&self) -> Result<(), CaseError> {
        let fault = |part: String, fault: &str| Err(CaseError::Part { part, fault: fault.to_owned() });
        let ScanRequest { instance, n, input_offset, output_offset, in_place, .. } = self.request;
        let bytes = instance.element().bytes() as u32;
        if [input_offset, output_offset]
            .iter()
            .any(|offset| !offset.is_multiple_of(bytes) || *offset >= ScanRequest::OFFSETS)
        {
            let limit = format!("offsets are multiples of the element size below {}", ScanRequest::OFFSETS);
            return fault(format!("input-offset={input_offset}"), &limit);
        }
        if in_place && input_offset != output_offset {
            return fault(format!("output-offset={output_offset}"), "in place, it is that of the input");
        }
        if n > 1 << 24 {
            return fault(format!("n={n}"), "at most 2^24 elements: every thread is a coroutine");
        }
        if self.launches == 0 || self.launches > 1000 {
            return fault(format!("launches={}", self.launches), "1 to 1000");
        }
        if self.completed_epochs >= abi::LOOKBACK_MAXIMUM_EPOCH {
            return fault(format!("epochs={}", self.completed_epochs), "below 2^30 - 1");
        }
        if self.resident_blocks == 0 || self.resident_blocks > 4096 {
            return fault(format!("resident={}", self.resident_blocks), "1 to 4096");
        }
        if let Some(mutant) = self.mutant.filter(|mutant| !mutant.is_of_host()) {
            let known = OPERATORS_WITH_MUTANTS.contains(&(instance.element(), instance.operator()));
            if !known {
                return fault(
                    format!("mutant={}", mutant.name),
                    "this type and operator are not compiled with mutants",
                );
            }
        }
        Plan::new(&self.request)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_comes_back_from_its_text() {
        let mutants = Mutant::all().expect("readable").iter().map(Some).chain([None]);
        for mutant in mutants {
            for seed in 0..40 {
                for memory in [Memory::Strong, Memory::Weak] {
                    let case = Case::draw(mutant, memory, seed);
                    assert_eq!(case.to_string().parse::<Case>().as_ref(), Ok(&case));
                    assert_eq!(Case::draw(mutant, memory, seed), case);
                }
            }
        }
    }

    #[test]
    fn what_is_drawn_has_enough_tiles_and_warps() {
        for seed in 0..500 {
            let case = Case::draw(None, Memory::Weak, seed);
            assert!(case.tiles() >= 8, "{case}");
            assert!(case.request.config.block_threads >= 64, "{case}");
        }
    }

    #[test]
    fn a_launch_counts_for_every_strategy_with_tiles() {
        for seed in 0..500 {
            let case = Case::draw(None, Memory::Strong, seed);
            let tiles = case.tiles_of(case.request.n);
            let wants = match case.request.strategy {
                Strategy::Sequential
                | Strategy::Naive
                | Strategy::HillisSteele
                | Strategy::Blelloch
                | Strategy::SingleBlock => 0,
                _ => case.tiles(),
            };
            assert_eq!(tiles, wants, "{case}");
        }
    }

    #[test]
    fn texts_that_are_no_case_say_what_is_wrong() {
        let good = Case::draw(None, Memory::Strong, 1).to_string();
        let fault = |text: &str| text.parse::<Case>().expect_err(text).to_string();
        assert!(fault("").contains("key=value"));
        assert!(fault("seed=1").contains("mutant"));
        assert!(fault(&good.replace("seed=1", "seed=x")).contains("seed=x"));
        assert!(fault(&format!("{good},colour=red")).contains("colour=red"));
        assert!(fault(&good.replace("mutant=none", "mutant=none_such")).contains("none_such"));
    }
}
