//! What the warps of a block of `lookahead` do for each tile, read from the PTX.
//!
//! The text has one loop a task, and the loop of the reducers two ways through it: that of the first one, which
//! publishes, and that of the others. So a step belongs to a task by the source function that it was inlined from, and
//! to a tile's round by the graph of branches: it lies on a way from something that the task must do (the anchor) round
//! to the same again. Waits, arrivals' barriers of lanes and block barriers count only if every such way passes them: a
//! wait that may be skipped orders nothing. Which barrier or array of the ring is meant is in the address.

use super::platform::Graph;
use super::program::{Scope, Semantics};
use super::ptx::{Instruction, Text, immediate};
use super::reader::{ExtractError, Extraction, error, width};
use super::sequences::{Counter, Ring, RingArray, RingBarrier, Role, Step, StepKind, Task};
use crate::abi;
use std::collections::BTreeSet;

/// An mbarrier, and the index of a tile.
const WORD_BYTES: i64 = 8;

/// Where the arrays of the ring begin, from the symbol of the ring.
struct Places {
    symbol: String,
    /// By [`RingBarrier`].
    barriers: Vec<i64>,
    stages: i64,
    /// Bytes of a value: of all that the finder stores, the prefix of a tile.
    value_bytes: i64,
}

impl Places {
    /// From the initialisation, which goes through the barriers of a stage in the order of [`RingBarrier`].
    fn new(extraction: &Extraction<'_>) -> Result<(Self, Vec<Option<u32>>), ExtractError> {
        let missing = ExtractError::Missing { what: "initialisation of the ring's barriers" };
        let all = &extraction.text.instructions;
        let first = all.iter().filter(|i| i.base() == "mbarrier" && i.has("init")).take(RingBarrier::ALL.len());
        let (mut symbols, mut barriers, mut expected) = (BTreeSet::new(), Vec::new(), Vec::new());
        for instruction in first {
            let Some((Some(symbol), at)) = place(extraction.text, instruction) else { return Err(missing) };
            symbols.insert(symbol);
            barriers.push(at);
            let count = instruction.operands.get(1).map(|operand| extraction.text.sums(operand, 0));
            expected.push(match count.as_deref() {
                Some([count]) if count.terms.is_empty() => u32::try_from(count.constant).ok(),
                _ => None,
            });
        }
        let bytes = barriers.get(1).zip(barriers.first()).map_or(0, |(second, first)| second - first);
        let is_dense = barriers.windows(2).all(|pair| pair[1] - pair[0] == bytes);
        let (Some(symbol), 1) = (symbols.first().cloned(), symbols.len()) else { return Err(missing) };
        if barriers.len() != RingBarrier::ALL.len() || !is_dense || bytes < WORD_BYTES {
            return Err(missing);
        }
        let stores =
            |i: &&Instruction| i.frame(&["scan", "find_prefixes"]).is_some() && i.base() == "st" && i.has("shared");
        let (bytes_of_element, elements) = all.iter().find(stores).map_or(Ok((0, 0)), width)?;
        let value_bytes = i64::from(bytes_of_element * elements);
        Ok((Self { symbol, barriers, stages: bytes / WORD_BYTES, value_bytes }, expected))
    }

    /// What a place in the ring is of. Values lie before the indices of tiles and these before the barriers
    /// (`lookahead_ring`).
    fn role(&self, at: i64) -> Option<Role> {
        let size = self.stages * WORD_BYTES;
        if let Some(index) = self.barriers.iter().position(|&first| (first..first + size).contains(&at)) {
            return Some(Role::Phase(RingBarrier::ALL[index]));
        }
        let reducers = i64::from(abi::LOOKBACK_REDUCING_WARPS);
        let mut begin = self.barriers[0] - size;
        let values = [
            (RingArray::Tile, 0),
            (RingArray::TilePrefix, 1),
            (RingArray::SharePrefix, reducers),
            (RingArray::ShareTotal, reducers),
        ];
        for (array, of_stage) in values {
            begin -= self.stages * of_stage * self.value_bytes;
            if at >= begin {
                return Some(Role::Ring(array));
            }
        }
        Some(Role::Ring(RingArray::WarpPrefix))
    }
}

/// The symbol that an address is counted from, if it is one, and the constant beside it. What an index is multiplied by
/// is left out, and with it the constants in the index: `a[helper - 1]` is a place of the array `a`.
fn place(text: &Text, instruction: &Instruction) -> Option<(Option<String>, i64)> {
    let operand = instruction.operands.iter().find(|operand| operand.starts_with('['))?.trim_matches(['[', ']']);
    let (base, offset) = operand.split_once('+').unwrap_or((operand, "0"));
    let (symbol, at) = symbol_and_constant(text, base.trim(), 0);
    Some((symbol, at + immediate(offset.trim())?))
}

fn symbol_and_constant(text: &Text, operand: &str, depth: u32) -> (Option<String>, i64) {
    if let Some(number) = immediate(operand) {
        return (None, number);
    }
    if !operand.starts_with('%') {
        return (Some(operand.to_owned()), 0);
    }
    let Some(definition) = text.definition(operand).filter(|_| depth < 64) else { return (None, 0) };
    let of = |index: usize| {
        definition.operands.get(index).map_or((None, 0), |operand| symbol_and_constant(text, operand, depth + 1))
    };
    match definition.base() {
        "mov" | "cvt" | "cvta" => of(1),
        "add" => {
            let ((left, one), (right, other)) = (of(1), of(2));
            (left.or(right), one + other)
        }
        _ => (None, 0),
    }
}

struct Reader<'a> {
    extraction: &'a Extraction<'a>,
    graph: Graph,
    places: Places,
}

/// Reads the ring.
pub(super) fn extract(extraction: &Extraction<'_>) -> Result<Ring, ExtractError> {
    let (places, expected) = Places::new(extraction)?;
    let reader = Reader { extraction, graph: Graph::new(extraction.text), places };
    let mut rounds = vec![Vec::new(); Task::ALL.len()];
    let fetching = reader.function("fetch_tiles");
    let reducing = reader.function("publish_aggregates");
    let finding = reader.function("find_prefixes");
    let scanning = reader.function("scan_tiles_ahead");
    let is = |kind, array| move |reader: &Reader<'_>, index| reader.is(index, kind, Role::Ring(array));
    let class = extraction.layout.name();
    let calls =
        |name: &'static str| move |reader: &Reader<'_>, index: usize| reader.at(index).frame(&[class, name]).is_some();
    let anchors = [
        // The ways of a tile that the end of the array cuts: on others the producer stores no elements itself.
        (Task::Producer, &fetching, reader.first(&fetching, is(StepKind::Store, RingArray::Elements))),
        (Task::FirstReducer, &reducing, reader.first(&reducing, calls("publish"))),
        (Task::OtherReducer, &reducing, reader.first(&reducing, is(StepKind::Store, RingArray::ShareTotal))),
        // Not a read, which has loops of its own.
        (Task::Finder, &finding, reader.first(&finding, is(StepKind::Store, RingArray::TilePrefix))),
        (Task::Scanner, &scanning, reader.first(&scanning, is(StepKind::Load, RingArray::TilePrefix))),
    ];
    for (task, function, anchor) in anchors {
        let anchor = anchor.ok_or(ExtractError::Missing { what: "loop of a warp of look-ahead" })?;
        rounds[task as usize] = reader.round(task, function, anchor)?;
    }
    let end = reader.end(&finding, calls("read"))?;
    let ring = Ring { expected, rounds, end };
    complete(&ring)?;
    Ok(ring)
}

/// What each task must do with the arrays, or something of it was not understood.
fn complete(ring: &Ring) -> Result<(), ExtractError> {
    use RingArray::{Elements, SharePrefix, ShareTotal, Tile, TilePrefix, WarpPrefix};
    use StepKind::{Load, Store};
    let wanted = [
        (Task::Producer, Store, &[Tile, Elements][..]),
        (Task::FirstReducer, Load, &[Tile, Elements, ShareTotal]),
        (Task::FirstReducer, Store, &[WarpPrefix, SharePrefix]),
        (Task::OtherReducer, Load, &[Tile, Elements]),
        (Task::OtherReducer, Store, &[WarpPrefix, ShareTotal]),
        (Task::Finder, Load, &[Tile]),
        (Task::Finder, Store, &[TilePrefix]),
        (Task::Scanner, Load, &[Tile, Elements, TilePrefix, SharePrefix, WarpPrefix]),
    ];
    for (task, kind, arrays) in wanted {
        let has = |array| ring.round(task).iter().any(|step| step.kind == kind && step.role == Role::Ring(array));
        if !arrays.iter().all(|&array| has(array)) {
            return Err(ExtractError::Missing { what: "access to the ring of look-ahead" });
        }
    }
    Ok(())
}

impl Reader<'_> {
    fn at(&self, index: usize) -> &Instruction {
        &self.extraction.text.instructions[index]
    }

    /// The instructions that come from a function of the kernel, in the order of the text.
    fn function(&self, name: &str) -> Vec<usize> {
        (0..self.extraction.text.instructions.len())
            .filter(|&index| self.at(index).frame(&["scan", name]).is_some())
            .collect()
    }

    fn first(&self, function: &[usize], test: impl Fn(&Self, usize) -> bool) -> Option<usize> {
        function.iter().copied().find(|&index| test(self, index))
    }

    /// What an instruction touches, if it is of the ring.
    fn role(&self, index: usize) -> Option<Role> {
        let instruction = self.at(index);
        let is_shared = instruction.has("shared") || instruction.base() == "mbarrier";
        match instruction.base() {
            "bar" | "barrier" | "fence" | "membar" => return Some(Role::Nothing),
            "ld" | "st" | "mbarrier" if is_shared => {}
            "atom" | "red" if instruction.frame(&["scan", "draw_ticket"]).is_some() => {
                return Some(Role::Counter(Counter::Ticket));
            }
            _ => return None,
        }
        if let Some((Some(symbol), at)) = place(self.extraction.text, instruction)
            && symbol == self.places.symbol
        {
            return self.places.role(at);
        }
        let of_tile = ["reduce_vector", "fetch_elements", "fill_elements", "fill_lines"];
        let touches_elements = of_tile.iter().any(|name| instruction.frame(&["scan", name]).is_some())
            || ["load_staged", "reduce_skipped"].iter().any(|name| instruction.frame(&["tile", name]).is_some());
        touches_elements.then_some(Role::Ring(RingArray::Elements))
    }

    fn is(&self, index: usize, kind: StepKind, role: Role) -> bool {
        let base = if kind == StepKind::Store { "st" } else { "ld" };
        self.at(index).base() == base && self.role(index) == Some(role)
    }

    /// Whether a way leads from behind one instruction to another and passes by a third one. With `is_forward` it follows
    /// no branch back.
    fn leads(&self, from: usize, to: usize, without: Option<usize>, is_forward: bool) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            for &next in &self.graph.after[at] {
                if Some(next) == without || is_forward && next <= at {
                    continue;
                }
                if next == to {
                    return true;
                }
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        false
    }

    /// The steps on the ways from the anchor round to itself.
    fn round(&self, task: Task, function: &[usize], anchor: usize) -> Result<Vec<Step>, ExtractError> {
        let mut steps: Vec<Step> = Vec::new();
        let is_reducer = matches!(task, Task::FirstReducer | Task::OtherReducer);
        for &index in function {
            let is_anchor = index == anchor;
            let comes_round = || self.leads(anchor, index, None, false) && self.leads(index, anchor, None, false);
            // The two kinds of reducer share a loop: what one passes without going round is its own.
            let is_on_way = || self.leads(index, anchor, None, true) || self.leads(anchor, index, None, true);
            let Some(kind) = self.kind(index) else { continue };
            if !is_anchor && !(comes_round() && (!is_reducer || is_on_way())) {
                continue;
            }
            let is_order = matches!(kind, StepKind::Wait | StepKind::WarpBarrier | StepKind::Barrier(_));
            if is_order && self.leads(anchor, anchor, Some(index), false) {
                continue;
            }
            let step = self.step(index, kind)?;
            let is_same = |other: &Step| (other.kind, other.role) == (kind, step.role);
            // One after the other: rows, lanes and shares are told apart nowhere.
            let is_access = !matches!(kind, StepKind::Arrive | StepKind::Wait | StepKind::Update);
            if !(is_access && steps.last().is_some_and(is_same)) {
                steps.push(step);
            }
        }
        Ok(steps)
    }

    /// What the finder waits for behind its loop.
    fn end(&self, function: &[usize], reads: impl Fn(&Self, usize) -> bool) -> Result<Vec<Step>, ExtractError> {
        let Some(anchor) = self.first(function, reads) else { return Ok(Vec::new()) };
        let is_behind = |&&index: &&usize| {
            let is_finish = self.at(index).frame(&["scan", "finish_tile"]).is_some();
            !is_finish && self.leads(anchor, index, None, false) && !self.leads(index, anchor, None, false)
        };
        let steps = function.iter().filter(is_behind).filter_map(|&index| Some((index, self.kind(index)?)));
        steps
            .filter(|(_, kind)| matches!(kind, StepKind::Wait | StepKind::WarpBarrier | StepKind::Fence(_)))
            .map(|(index, kind)| self.step(index, kind))
            .collect()
    }

    /// What an instruction is to the ring; nothing for all others.
    fn kind(&self, index: usize) -> Option<StepKind> {
        let instruction = self.at(index);
        let class = self.extraction.layout.name();
        if instruction.is_of_interest() {
            if instruction.frame(&[class, "publish"]).is_some() {
                return Some(StepKind::Publish);
            }
            if instruction.frame(&[class, "read"]).is_some() {
                return Some(StepKind::Read);
            }
        }
        Some(match instruction.base() {
            "mbarrier" if instruction.has("arrive") => StepKind::Arrive,
            "mbarrier" if instruction.has("try_wait") || instruction.has("test_wait") => StepKind::Wait,
            "bar" if instruction.has("warp") => StepKind::WarpBarrier,
            "ld" if matches!(self.role(index)?, Role::Ring(_)) => StepKind::Load,
            "st" if matches!(self.role(index)?, Role::Ring(_)) => StepKind::Store,
            "atom" | "red" if matches!(self.role(index)?, Role::Counter(_)) => StepKind::Update,
            "fence" if !instruction.has("proxy") => StepKind::Fence(instruction.has("sc")),
            "membar" => StepKind::Fence(true),
            _ => return None,
        })
    }

    fn step(&self, index: usize, kind: StepKind) -> Result<Step, ExtractError> {
        let instruction = self.at(index);
        let role = match kind {
            StepKind::Publish | StepKind::Read | StepKind::WarpBarrier | StepKind::Fence(_) => Role::Nothing,
            _ => self.role(index).ok_or_else(|| error(instruction, "what it touches of the ring is not understood"))?,
        };
        let is_phase = matches!(kind, StepKind::Arrive | StepKind::Wait);
        if is_phase != matches!(role, Role::Phase(_)) {
            return Err(error(instruction, "which barrier of the ring it means is not understood"));
        }
        // The values in the ring are plain; what an mbarrier orders where no word says so is the manual's default.
        let (semantics, scope) = match kind {
            StepKind::Arrive | StepKind::Wait => {
                let default = if kind == StepKind::Arrive { Semantics::Release } else { Semantics::Acquire };
                let semantics = if instruction.has("relaxed") { Semantics::Relaxed } else { default };
                (semantics, if instruction.has("cluster") { Scope::Cluster } else { Scope::Cta })
            }
            _ => self.extraction.order_of(instruction),
        };
        let (opcode, source) = (instruction.opcode.join("."), self.extraction.source(instruction));
        Ok(Step { kind, role, semantics, scope, opcode, source })
    }
}
