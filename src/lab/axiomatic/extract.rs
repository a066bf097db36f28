//! The descriptor protocol of a kernel, read from its PTX.
//!
//! A kernel that NVRTC compiled with `--generate-line-info` says of each instruction which source line it comes
//! from, in which function, and through which calls that function was inlined (`.loc … function_name …, inlined_at
//! …`). So a store belongs to `split::publish` because the compiler says so. Semantics, scope, width and vector are in
//! the opcode; which half of a word, which slot and which counter is meant is in the address, followed back
//! through the arithmetic to the kernel's parameters; the status that a `publish` announces is followed back to the
//! constant. Nothing here knows what the orderings ought to be.

use super::program::{Scope, Semantics};
use std::collections::BTreeMap;
use std::fmt;

/// What keeps a kernel's text from being understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// No `.loc` with a function name: compiled without `--generate-line-info`, or no PTX.
    #[error("the PTX names no source functions: compile with --generate-line-info")]
    NoLineInfo,
    /// Part of the protocol is not there.
    #[error("the PTX has no {what}: not a single-pass scan kernel, or one in a form that is not understood")]
    Missing {
        /// The part.
        what: &'static str,
    },
    /// An instruction of the protocol is of no known form.
    #[error("line {line} of the PTX, '{text}': {reason}")]
    Instruction {
        /// Its line.
        line: usize,
        /// Its text.
        text: String,
        /// What is not understood.
        reason: &'static str,
    },
}

/// How tiles hear of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Each tile looks back until it meets an inclusive prefix.
    LookBack,
    /// Each tile waits for its neighbour's inclusive prefix.
    Chained,
    /// Each tile reads the aggregates of all tiles before it.
    OneWave,
}

impl Strategy {
    /// The name of the C++ function.
    pub fn name(self) -> &'static str {
        match self {
            Self::LookBack => "lookback",
            Self::Chained => "chained",
            Self::OneWave => "one_wave",
        }
    }

    const ALL: [Self; 3] = [Self::LookBack, Self::Chained, Self::OneWave];
}

/// How a descriptor lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Value and tag in one 64-bit word.
    Packed64,
    /// Value and tag in one 128-bit word.
    Packed128,
    /// A tag, and slots for values.
    Split,
}

impl Layout {
    /// The name of the C++ structure.
    pub fn name(self) -> &'static str {
        match self {
            Self::Packed64 => "packed_64",
            Self::Packed128 => "packed_128",
            Self::Split => "split",
        }
    }

    const ALL: [Self; 3] = [Self::Packed64, Self::Packed128, Self::Split];

    fn half_bytes(self) -> i64 {
        if self == Self::Packed128 { 8 } else { 4 }
    }
}

/// What a published descriptor says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// The tile's own total.
    Aggregate,
    /// The total of all tiles up to it.
    Prefix,
}

/// A word of the workspace that all blocks share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// The next tile to hand out.
    Ticket,
    /// Blocks that are done.
    Finished,
    /// Launches that are done.
    Epochs,
}

/// What a step touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The tag of a split descriptor.
    Tag,
    /// A value of a split descriptor: the slot that is meant under either status. Slots are numbered as the
    /// publishes write them.
    Value {
        /// Under an aggregate.
        aggregate: usize,
        /// Under a prefix.
        prefix: usize,
    },
    /// Halves of a packed descriptor, of which 0 is the value and 1 the tag.
    Word {
        /// The first half.
        first: u8,
        /// How many.
        halves: u8,
        /// 2 if they are the elements of a vector access.
        elements: u8,
    },
    /// A counter.
    Counter(Counter),
    /// What one thread of a block hands to the others in shared memory.
    Shared,
    /// Nothing: a fence or a barrier.
    Nothing,
}

/// What a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// A load.
    Load,
    /// A store.
    Store,
    /// A read-modify-write.
    Update,
    /// A fence; `true` for `fence.sc`.
    Fence(bool),
    /// A block barrier with its number.
    Barrier(u32),
}

/// One instruction of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it is.
    pub kind: StepKind,
    /// What it touches.
    pub role: Role,
    /// What it orders.
    pub semantics: Semantics,
    /// Whom it reaches.
    pub scope: Scope,
    /// Its opcode.
    pub opcode: String,
    /// Where it stands in the source, outermost call first.
    pub source: String,
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match self.role {
            Role::Tag => String::from(" tag"),
            Role::Value { aggregate, prefix } if aggregate == prefix => format!(" slot {aggregate}"),
            Role::Value { .. } => String::from(" slot of the status"),
            Role::Word { first, halves: 1, .. } => String::from(if first == 0 { " value half" } else { " tag half" }),
            Role::Word { .. } => String::from(" word"),
            Role::Counter(counter) => format!(" {counter:?}").to_lowercase(),
            Role::Shared => String::from(" shared"),
            Role::Nothing => String::new(),
        };
        write!(formatter, "{}{role}", self.opcode)
    }
}

/// One `publish` of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// What it announces.
    pub status: Status,
    /// Its instructions.
    pub steps: Vec<Step>,
}

/// The protocol of one kernel, as its PTX has it. All of it can be changed, to see what a change does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequences {
    /// How tiles hear of each other.
    pub strategy: Strategy,
    /// How descriptors lie in memory.
    pub layout: Layout,
    /// How a block takes its tile: the epoch, the ticket, and how the block's threads learn of them.
    pub start: Vec<Step>,
    /// Every `publish`, in the order of the text.
    pub publishes: Vec<Publish>,
    /// Every `read` that differs from the others.
    pub reads: Vec<Vec<Step>>,
    /// From the last `publish` to the count of finished blocks: the prefix for the block's threads, the barrier.
    pub hand_over: Vec<Step>,
    /// The count of finished blocks.
    pub finish: Vec<Step>,
    /// How the last block clears one descriptor at the wrap of the epoch.
    pub invalidate: Vec<Step>,
    /// What the last block writes else.
    pub resets: Vec<Step>,
    /// How the block's threads load the prefix.
    pub result: Vec<Step>,
}

impl Sequences {
    /// The steps of the publish with that status.
    pub fn publish(&self, status: Status) -> Option<&[Step]> {
        self.publishes.iter().find(|publish| publish.status == status).map(|publish| publish.steps.as_slice())
    }
}

/// A sequence on one line.
pub fn describe(steps: &[Step]) -> String {
    steps.iter().map(Step::to_string).collect::<Vec<_>>().join("; ")
}

/// Reads the protocol of a single-pass kernel, `lookback`, `chained` or `one_wave`, from its PTX.
///
/// # Errors
/// When the text has no line information or is not such a kernel.
pub fn extract(ptx: &str) -> Result<Sequences, ExtractError> {
    let text = Text::parse(ptx);
    if text.instructions.iter().all(|instruction| instruction.frames.is_empty()) {
        return Err(ExtractError::NoLineInfo);
    }
    let strategy = Strategy::ALL
        .into_iter()
        .find(|strategy| text.has_function(&["scan", strategy.name()]))
        .ok_or(ExtractError::Missing { what: "function scan::lookback, scan::chained or scan::one_wave" })?;
    let layout = Layout::ALL
        .into_iter()
        .find(|layout| text.has_function(&[layout.name(), "publish"]))
        .ok_or(ExtractError::Missing { what: "publish" })?;
    Extraction { text: &text, strategy, layout }.run()
}

/// A place in a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Location {
    file: u32,
    line: u32,
    column: u32,
}

/// A function on the way to an instruction, and where in it the next one is called or the instruction stands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    function: Vec<String>,
    location: Location,
    called_from: Option<Location>,
}

impl Frame {
    fn is(&self, path: &[&str]) -> bool {
        self.function.len() >= path.len()
            && self.function[self.function.len() - path.len()..].iter().zip(path).all(|(have, want)| have == want)
    }
}

/// One instruction.
#[derive(Debug, Clone)]
struct Instruction {
    line: usize,
    opcode: Vec<String>,
    operands: Vec<String>,
    /// Innermost first.
    frames: Vec<Frame>,
}

impl Instruction {
    fn base(&self) -> &str {
        self.opcode.first().map_or("", String::as_str)
    }

    fn has(&self, qualifier: &str) -> bool {
        self.opcode.iter().any(|word| word == qualifier)
    }

    fn text(&self) -> String {
        format!("{} {}", self.opcode.join("."), self.operands.join(", "))
    }

    fn error(&self, reason: &'static str) -> ExtractError {
        ExtractError::Instruction { line: self.line, text: self.text(), reason }
    }

    /// The frame of a function, by the end of its path.
    fn frame(&self, path: &[&str]) -> Option<&Frame> {
        self.frames.iter().find(|frame| frame.is(path))
    }

    /// Whether it accesses memory that threads share, or orders such accesses.
    fn is_of_interest(&self) -> bool {
        match self.base() {
            "ld" | "st" => !self.has("param") && !self.has("local") && !self.has("const"),
            "atom" | "red" | "fence" | "membar" | "bar" | "barrier" => true,
            _ => false,
        }
    }
}

/// A kernel's text.
struct Text {
    instructions: Vec<Instruction>,
    files: BTreeMap<u32, String>,
    /// By register: the instructions that define it.
    definitions: BTreeMap<String, Vec<usize>>,
}

impl Text {
    fn parse(ptx: &str) -> Self {
        let names = debug_strings(ptx);
        let mut files = BTreeMap::new();
        let mut known: BTreeMap<Location, Inlining> = BTreeMap::new();
        let mut current: Option<Location> = None;
        let mut instructions = Vec::new();
        for (index, line) in ptx.lines().enumerate() {
            let line = line.split("//").next().unwrap_or("").trim();
            if let Some(rest) = line.strip_prefix(".file") {
                let mut words = rest.split_whitespace();
                if let (Some(Ok(number)), Some(name)) = (words.next().map(str::parse), words.next()) {
                    files.insert(number, name.trim_matches('"').to_owned());
                }
            } else if let Some(rest) = line.strip_prefix(".loc") {
                if let Some((location, function)) = parse_location(rest, &names) {
                    // Line 0 is code that belongs to no line; it says nothing of a function.
                    known.insert(location, function);
                    current = Some(location);
                }
            } else if !line.is_empty() && !line.starts_with('.') && !line.ends_with(':') {
                for part in statements(line) {
                    if let Some((opcode, operands)) = parse_instruction(part) {
                        let frames = frames_of(current, &known);
                        instructions.push(Instruction { line: index + 1, opcode, operands, frames });
                    }
                }
            }
        }
        let mut definitions: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, instruction) in instructions.iter().enumerate() {
            if matches!(instruction.base(), "st" | "red" | "bra" | "bar" | "barrier" | "fence" | "membar" | "ret") {
                continue;
            }
            if let Some(target) = instruction.operands.first() {
                for register in registers(target) {
                    definitions.entry(register).or_default().push(index);
                }
            }
        }
        Self { instructions, files, definitions }
    }

    fn has_function(&self, path: &[&str]) -> bool {
        self.instructions.iter().any(|instruction| instruction.frame(path).is_some())
    }

    /// The one instruction that defines a register; nothing if several do.
    fn definition(&self, register: &str) -> Option<&Instruction> {
        match self.definitions.get(register)?.as_slice() {
            [only] => self.instructions.get(*only),
            _ => None,
        }
    }

    /// The value of an operand as a sum; with a `selp` in it, one for either outcome.
    fn sums(&self, operand: &str, depth: u32) -> Vec<Sum> {
        if let Some(number) = immediate(operand) {
            return vec![Sum::constant(number)];
        }
        let opaque = || vec![Sum::symbol(operand)];
        let Some(definition) = self.definition(operand).filter(|_| depth < 64) else { return opaque() };
        let arguments = &definition.operands[1..];
        let argument = |index: usize| arguments.get(index).map(|text| self.sums(text, depth + 1));
        let both = |combine: &dyn Fn(&Sum, &Sum) -> Option<Sum>| -> Option<Vec<Sum>> {
            let (left, right) = (argument(0)?, argument(1)?);
            if left.len() > 1 && right.len() > 1 {
                return None;
            }
            left.iter().flat_map(|left| right.iter().map(move |right| combine(left, right))).collect()
        };
        let found = match definition.base() {
            "mov" | "cvta" | "cvt" => argument(0),
            "add" => both(&|left, right| Some(left.plus(right, 1))),
            "sub" => both(&|left, right| Some(left.plus(right, -1))),
            "neg" => argument(0).map(|sums| sums.iter().map(|sum| sum.times(-1)).collect()),
            "not" => argument(0).map(|sums| sums.iter().map(|sum| sum.times(-1).plus(&Sum::constant(1), -1)).collect()),
            "shl" => {
                both(&|left, right| Some(left.times(1_i64.checked_shl(u32::try_from(right.as_constant()?).ok()?)?)))
            }
            "mul" => both(&|left, right| match (left.as_constant(), right.as_constant()) {
                (_, Some(factor)) => Some(left.times(factor)),
                (Some(factor), _) => Some(right.times(factor)),
                _ => None,
            }),
            "mad" => both(&|left, right| Some(left.times(right.as_constant()?))).and_then(|products| {
                let addend = argument(2)?;
                let [addend] = addend.as_slice() else { return None };
                Some(products.iter().map(|product| product.plus(addend, 1)).collect())
            }),
            "selp" => {
                let (yes, no) = (argument(0), argument(1));
                match (yes, no) {
                    (Some(yes), Some(no)) if yes.len() == 1 && no.len() == 1 => {
                        let swapped = arguments.get(2).and_then(|predicate| self.is_not_aggregate(predicate));
                        match swapped {
                            Some(false) => Some(vec![yes[0].clone(), no[0].clone()]),
                            Some(true) => Some(vec![no[0].clone(), yes[0].clone()]),
                            None => None,
                        }
                    }
                    _ => None,
                }
            }
            "ld" if definition.has("param") => {
                let address = arguments.first().map(|text| text.trim_matches(['[', ']']).to_owned());
                address.map(|address| vec![Sum::symbol(&self.parameter(&address))])
            }
            _ => None,
        };
        found.unwrap_or_else(opaque)
    }

    /// `%rd36+24`, where %rd36 is the address of the parameters, as `param+24`.
    fn parameter(&self, address: &str) -> String {
        let (base, offset) = address.split_once('+').unwrap_or((address, "0"));
        let base = match self.definition(base) {
            Some(definition) if definition.base() == "mov" => {
                definition.operands.get(1).map_or(base, String::as_str).to_owned()
            }
            _ => base.to_owned(),
        };
        format!("{PARAMETER}{base}+{offset}")
    }

    /// Whether a predicate is false where a status is that of an aggregate; nothing if it compares something else.
    fn is_not_aggregate(&self, predicate: &str) -> Option<bool> {
        let definition = self.definition(predicate)?;
        let number = immediate(definition.operands.get(2)?)?;
        match (definition.base(), definition.has("eq"), definition.has("ne"), number) {
            ("setp", true, _, 1) | ("setp", _, true, 2) => Some(false),
            ("setp", true, _, 2) | ("setp", _, true, 1) => Some(true),
            _ => None,
        }
    }

    /// Two bits of an operand at a position, if they are a constant.
    fn bits(&self, operand: &str, position: u32, depth: u32) -> Option<u8> {
        if let Some(number) = immediate(operand) {
            return Some(((number >> position.min(63)) & 3) as u8);
        }
        let definition = self.definition(operand).filter(|_| depth < 32)?;
        let argument = |index: usize| definition.operands.get(index + 1).map(String::as_str);
        let of = |index: usize, position: u32| self.bits(argument(index)?, position, depth + 1);
        match definition.base() {
            "or" => match (of(0, position), of(1, position)) {
                (Some(left), Some(right)) => Some(left | right),
                (Some(3), None) | (None, Some(3)) => Some(3),
                _ => None,
            },
            "add" if position == 0 => Some((of(0, 0)? + of(1, 0)?) & 3),
            "shl" => {
                let distance = u32::try_from(immediate(argument(1)?)?).ok()?;
                if position + 2 <= distance { Some(0) } else { of(0, position.checked_sub(distance)?) }
            }
            "cvt" => {
                if position >= 32 {
                    Some(0)
                } else {
                    of(0, position)
                }
            }
            "bfi" => {
                let (from, length) = (immediate(argument(2)?)?, immediate(argument(3)?)?);
                let (from, length) = (u32::try_from(from).ok()?, u32::try_from(length).ok()?);
                if (from..from + length).contains(&position) { of(0, position - from) } else { of(1, position) }
            }
            "mov" => {
                let parts = vector(argument(0)?);
                match parts.as_slice() {
                    [low, high] if definition.has("b64") => {
                        let (part, position) = if position < 32 { (low, position) } else { (high, position - 32) };
                        self.bits(part, position, depth + 1)
                    }
                    [low, high] if definition.has("b128") => {
                        let (part, position) = if position < 64 { (low, position) } else { (high, position - 64) };
                        self.bits(part, position, depth + 1)
                    }
                    [_] => of(0, position),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

const PARAMETER: &str = "param:";

/// A constant and multiples of symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sum {
    constant: i64,
    terms: BTreeMap<String, i64>,
}

impl Sum {
    fn constant(constant: i64) -> Self {
        Self { constant, terms: BTreeMap::new() }
    }

    fn symbol(name: &str) -> Self {
        Self { constant: 0, terms: BTreeMap::from([(name.to_owned(), 1)]) }
    }

    fn plus(&self, other: &Self, factor: i64) -> Self {
        let mut sum = self.clone();
        sum.constant = sum.constant.wrapping_add(other.constant.wrapping_mul(factor));
        for (name, count) in &other.terms {
            *sum.terms.entry(name.clone()).or_insert(0) += count.wrapping_mul(factor);
        }
        sum.terms.retain(|_, count| *count != 0);
        sum
    }

    fn times(&self, factor: i64) -> Self {
        Self::constant(0).plus(self, factor)
    }

    fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The multiples of kernel parameters in it: what an array is, whichever element of it is meant.
    fn array(&self) -> BTreeMap<String, i64> {
        self.terms.iter().filter(|(name, _)| name.starts_with(PARAMETER)).map(|(n, c)| (n.clone(), *c)).collect()
    }
}

/// The statements of one line, with the braces of a block around them taken away.
fn statements(line: &str) -> impl Iterator<Item = &str> {
    line.split(';').map(|part| {
        let part = part.trim();
        part.strip_prefix('{').filter(|rest| rest.trim_start().starts_with(".reg")).unwrap_or(part).trim()
    })
}

/// Opcode words and operands. A guard in front is left out: whether an instruction is executed is the protocol's
/// business, what it orders is not changed by it.
fn parse_instruction(text: &str) -> Option<(Vec<String>, Vec<String>)> {
    let text = match text.strip_prefix('@') {
        Some(rest) => rest.split_once(char::is_whitespace)?.1.trim(),
        None => text,
    };
    let (opcode, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if !opcode.starts_with(|c: char| c.is_ascii_lowercase()) {
        return None;
    }
    let mut operands = Vec::new();
    let (mut depth, mut operand) = (0, String::new());
    for character in rest.chars() {
        match character {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                operands.push(operand.trim().to_owned());
                operand.clear();
                continue;
            }
            _ => {}
        }
        operand.push(character);
    }
    if !operand.trim().is_empty() {
        operands.push(operand.trim().to_owned());
    }
    Some((opcode.split('.').map(str::to_owned).collect(), operands))
}

/// The parts of `{a, b}`; of anything else, itself.
fn vector(operand: &str) -> Vec<&str> {
    operand.trim_matches(['{', '}']).split(',').map(str::trim).collect()
}

/// The registers that an operand which is written consists of: one, those of a vector, two with a `|` between.
fn registers(operand: &str) -> Vec<String> {
    vector(operand).into_iter().flat_map(|part| part.split('|')).map(str::to_owned).collect()
}

fn immediate(operand: &str) -> Option<i64> {
    match operand.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(u64::cast_signed),
        None => operand.parse().ok(),
    }
}

/// The function that a location was inlined from, and from where that was called.
type Inlining = Option<(String, Option<Location>)>;

/// ` 5 152 3, function_name $L__info_string40, inlined_at 11 101 5`
fn parse_location(text: &str, names: &BTreeMap<String, String>) -> Option<(Location, Inlining)> {
    let mut parts = text.split(',');
    let triple = |text: &str| -> Option<Location> {
        let mut numbers = text.split_whitespace().map(str::parse);
        let mut number = || numbers.next()?.ok();
        Some(Location { file: number()?, line: number()?, column: number()? })
    };
    let location = triple(parts.next()?)?;
    let (mut function, mut called_from) = (None, None);
    for part in parts {
        let (word, rest) = part.trim().split_once(char::is_whitespace)?;
        match word {
            "function_name" => {
                // A label, or a label and an offset into the strings behind it.
                let label = rest.split('+').next().unwrap_or(rest).trim();
                function = names.get(label).cloned();
            }
            "inlined_at" => called_from = triple(rest),
            _ => {}
        }
    }
    Some((location, function.map(|function| (function, called_from))))
}

/// The functions around a location, innermost first.
fn frames_of(location: Option<Location>, known: &BTreeMap<Location, Inlining>) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    let mut next = location;
    while let Some(location) = next {
        let Some(Some((function, called_from))) = known.get(&location) else { break };
        if frames.len() >= 64 {
            break;
        }
        frames.push(Frame { function: path_of(function), location, called_from: *called_from });
        next = *called_from;
    }
    frames
}

/// The strings of the section .debug_str, by label.
fn debug_strings(ptx: &str) -> BTreeMap<String, String> {
    let mut strings = BTreeMap::new();
    let mut label = None;
    let mut bytes: Vec<u8> = Vec::new();
    let mut finish = |label: &mut Option<String>, bytes: &mut Vec<u8>| {
        if let Some(label) = label.take() {
            let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
            strings.insert(label, String::from_utf8_lossy(&bytes[..end]).into_owned());
        }
        bytes.clear();
    };
    for line in ptx.lines().map(str::trim) {
        if let Some(name) = line.strip_suffix(':').filter(|name| name.starts_with('$')) {
            finish(&mut label, &mut bytes);
            label = name.contains("info_string").then(|| name.to_owned());
        } else if let Some(rest) = line.strip_prefix(".b8") {
            bytes.extend(rest.split(',').filter_map(|byte| byte.trim().parse::<u8>().ok()));
        }
    }
    finish(&mut label, &mut bytes);
    strings
}

/// The path of a mangled name (Itanium C++ ABI), without template arguments: `_ZNK8lookback5splitIjE7publishEyjjj` as
/// lookback, split, publish. A lambda is its function and `lambda`. A name in no such form is its own path.
fn path_of(mangled: &str) -> Vec<String> {
    let Some(rest) = mangled.strip_prefix("_Z") else { return vec![mangled.to_owned()] };
    let is_local = rest.starts_with('Z');
    let mut text = rest.trim_start_matches('Z');
    let is_nested = text.starts_with('N');
    text = text.strip_prefix('N').unwrap_or(text).trim_start_matches(['K', 'V', 'r']);
    let mut path = Vec::new();
    while let Some(first) = text.chars().next() {
        if first.is_ascii_digit() {
            let Some((name, rest)) = source_name(text) else { break };
            path.push(name.to_owned());
            text = rest;
            if !is_nested {
                break;
            }
        } else if first == 'I' {
            text = skip_balanced(text);
        } else if first == 'S' {
            text = skip_substitution(text);
        } else {
            break;
        }
    }
    if is_local {
        path.push(String::from("lambda"));
    }
    path
}

/// `5split…` as `split` and the rest.
fn source_name(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let length: usize = text[..digits].parse().ok()?;
    let name = text.get(digits..digits + length)?;
    Some((name, &text[digits + length..]))
}

/// Behind `S_`, `S1_`, `St` and the like.
fn skip_substitution(text: &str) -> &str {
    let rest = &text[1..];
    match rest.find(|c: char| !(c.is_ascii_digit() || c.is_ascii_uppercase())) {
        Some(end) if rest[end..].starts_with('_') => &rest[end + 1..],
        _ => rest.get(1..).unwrap_or(""),
    }
}

/// Behind template arguments, `I…E`.
fn skip_balanced(text: &str) -> &str {
    let mut depth = 0;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first.is_ascii_digit() {
            match source_name(rest) {
                Some((_, behind)) => rest = behind,
                None => return "",
            }
            continue;
        }
        match first {
            'S' => {
                rest = skip_substitution(rest);
                continue;
            }
            // A literal: a type and digits, which are no length.
            'L' => {
                rest = rest.find('E').map_or("", |end| &rest[end + 1..]);
                continue;
            }
            'I' | 'N' | 'X' | 'J' => depth += 1,
            'U' if rest.starts_with("Ul") => depth += 1,
            'E' => depth -= 1,
            _ => {}
        }
        rest = &rest[1..];
        if depth == 0 {
            return rest;
        }
    }
    ""
}

struct Extraction<'a> {
    text: &'a Text,
    strategy: Strategy,
    layout: Layout,
}

/// Instructions that one call of a function was inlined to.
struct Group<'a> {
    site: Option<Location>,
    instructions: Vec<&'a Instruction>,
}

impl<'a> Extraction<'a> {
    fn run(&self) -> Result<Sequences, ExtractError> {
        let class = self.layout.name();
        let publishes = self.groups(&[class, "publish"]);
        let reads = self.groups(&[class, "read"]);
        let invalidates = self.groups(&[class, "invalidate"]);
        if publishes.is_empty() {
            return Err(ExtractError::Missing { what: "store in publish" });
        }
        if reads.is_empty() {
            return Err(ExtractError::Missing { what: "load in read" });
        }
        let slots = self.slots(&publishes, &reads);
        let mut found = Vec::new();
        for (index, group) in publishes.iter().enumerate() {
            let status = self.status(group)?.unwrap_or(match (index, publishes.len(), self.strategy) {
                (0, 2, Strategy::LookBack) | (_, _, Strategy::OneWave) => Status::Aggregate,
                _ => Status::Prefix,
            });
            let steps = self.descriptor_steps(group, Some(status), slots.as_deref())?;
            found.push(Publish { status, steps });
        }
        let mut read_steps: Vec<Vec<Step>> = Vec::new();
        for group in &reads {
            let steps = without_repetitions(self.descriptor_steps(group, None, slots.as_deref())?);
            let same = |other: &Vec<Step>| {
                other.len() == steps.len() && other.iter().zip(&steps).all(|(one, other)| is_same_step(one, other))
            };
            if !read_steps.iter().any(same) {
                read_steps.push(steps);
            }
        }
        // A read whose value nobody uses has lost its load of the value: it decides nothing.
        let has_value = |steps: &Vec<Step>| steps.iter().any(|step| matches!(step.role, Role::Value { .. }));
        if self.layout == Layout::Split && read_steps.iter().any(has_value) {
            read_steps.retain(has_value);
        }
        // An unrolled loop has the sequence several times; one clears one descriptor.
        let invalidate = match invalidates.first() {
            Some(group) => {
                let mut steps = self.descriptor_steps(group, None, slots.as_deref())?;
                steps.truncate(1);
                steps
            }
            None => Vec::new(),
        };
        self.rest(found, read_steps, invalidate, &publishes)
    }

    fn rest(
        &self,
        publishes: Vec<Publish>,
        reads: Vec<Vec<Step>>,
        invalidate: Vec<Step>,
        groups: &[Group<'_>],
    ) -> Result<Sequences, ExtractError> {
        let interesting = || self.text.instructions.iter().filter(|instruction| instruction.is_of_interest());
        let kernel = |instruction: &Instruction| {
            let name = self.strategy.name();
            // Called by the kernel itself or by its lambda, not by one of its helpers.
            let caller = instruction.frames.get(1).or(instruction.frames.first());
            caller.is_some_and(|frame| frame.is(&["scan", name]) || frame.is(&["scan", name, "lambda"]))
        };
        let in_function =
            |name: &str| interesting().filter(|i| i.frame(&["scan", name]).is_some()).collect::<Vec<&Instruction>>();
        let start = in_function("start_tile");
        let is_invalidate = |i: &Instruction| i.frame(&[self.layout.name(), "invalidate"]).is_some();
        let finish: Vec<&Instruction> = in_function("finish_tile").into_iter().filter(|i| !is_invalidate(i)).collect();
        let counted = finish.iter().position(|i| matches!(i.base(), "atom" | "red"));
        let counted = counted.ok_or(ExtractError::Missing { what: "count of finished blocks" })?;
        let last_publish = groups.iter().flat_map(|g| g.instructions.iter().map(|i| i.line)).max().unwrap_or(0);
        let finish_line = finish[counted].line;
        let is_load = |i: &Instruction| i.base() == "ld" && i.has("shared");
        let hand_over: Vec<&Instruction> = interesting()
            .filter(|i| i.line > last_publish && i.line < finish_line && kernel(i) && !is_load(i))
            .collect();
        // The prefix is read behind the barrier, before the count or after it.
        let result: Vec<&Instruction> = interesting()
            .filter(|i| i.line > last_publish && kernel(i) && i.has("shared") && (is_load(i) || i.line > finish_line))
            .collect();
        // Which word is which: the ticket is what the start adds to, and so on.
        let offset = |instruction: Option<&&Instruction>| instruction.and_then(|i| self.counter_offset(i));
        let is_update = |i: &&&Instruction| matches!(i.base(), "atom" | "red");
        let global_load = |i: &&&Instruction| i.base() == "ld" && !i.has("shared");
        let counters = [
            (Counter::Ticket, offset(start.iter().find(is_update)).or(Some(0))),
            (Counter::Finished, offset(finish.get(counted))),
            (Counter::Epochs, offset(start.iter().find(global_load))),
        ];
        let steps = |instructions: &[&Instruction]| -> Result<Vec<Step>, ExtractError> {
            instructions.iter().map(|i| self.step(i, self.block_role(i, &counters))).collect()
        };
        Ok(Sequences {
            strategy: self.strategy,
            layout: self.layout,
            start: steps(&start)?,
            publishes,
            reads,
            hand_over: steps(&hand_over)?,
            finish: steps(&finish[..=counted])?,
            invalidate,
            resets: steps(&finish[counted + 1..])?,
            result: steps(&result)?,
        })
    }

    /// The instructions of a function, a group for each call of it.
    fn groups(&self, path: &[&str]) -> Vec<Group<'a>> {
        let mut groups: Vec<Group<'a>> = Vec::new();
        for instruction in self.text.instructions.iter().filter(|instruction| instruction.is_of_interest()) {
            let Some(frame) = instruction.frame(path) else { continue };
            match groups.iter_mut().find(|group| group.site == frame.called_from) {
                Some(group) => group.instructions.push(instruction),
                None => groups.push(Group { site: frame.called_from, instructions: vec![instruction] }),
            }
        }
        groups
    }

    /// The sums of the address of an access.
    fn address(&self, instruction: &Instruction) -> Vec<Sum> {
        let operand = instruction.operands.iter().find(|operand| operand.starts_with('['));
        let Some(inner) = operand.map(|operand| operand.trim_matches(['[', ']'])) else { return Vec::new() };
        let (base, offset) = inner.split_once('+').unwrap_or((inner, "0"));
        let offset = Sum::constant(immediate(offset.trim()).unwrap_or(0));
        self.text.sums(base.trim(), 0).iter().map(|sum| sum.plus(&offset, 1)).collect()
    }

    fn counter_offset(&self, instruction: &Instruction) -> Option<i64> {
        match self.address(instruction).as_slice() {
            [sum] if sum.terms.len() == 1 => Some(sum.constant),
            _ => None,
        }
    }

    fn block_role(&self, instruction: &Instruction, counters: &[(Counter, Option<i64>)]) -> Role {
        if matches!(instruction.base(), "fence" | "membar" | "bar" | "barrier") {
            return Role::Nothing;
        }
        if instruction.has("shared") {
            return Role::Shared;
        }
        let offset = self.counter_offset(instruction);
        let known = counters.iter().find(|(_, other)| offset.is_some() && *other == offset);
        known.map_or(Role::Nothing, |(counter, _)| Role::Counter(*counter))
    }

    /// The arrays in which the split layout keeps values, in the order in which publishes write them; nothing if an
    /// address was not understood, and then each status has its own.
    fn slots(&self, publishes: &[Group<'_>], reads: &[Group<'_>]) -> Option<Vec<BTreeMap<String, i64>>> {
        let mut arrays: Vec<BTreeMap<String, i64>> = Vec::new();
        let accesses = publishes.iter().chain(reads).flat_map(|group| group.instructions.iter());
        for instruction in accesses.filter(|instruction| is_payload(instruction)) {
            for sum in self.address(instruction) {
                let array = sum.array();
                if array.is_empty() {
                    return None;
                }
                if !arrays.contains(&array) {
                    arrays.push(array);
                }
            }
        }
        Some(arrays)
    }

    /// The status that a publish announces, if its constant is found.
    fn status(&self, group: &Group<'_>) -> Result<Option<Status>, ExtractError> {
        for instruction in group.instructions.iter().filter(|i| i.base() == "st" && !is_payload(i)) {
            let Some(value) = instruction.operands.last() else { continue };
            let parts = vector(value);
            let (bytes, _) = width(instruction)?;
            let found = match (self.layout, parts.as_slice()) {
                (_, [_, tag]) => self.text.bits(tag, 0, 0),
                (Layout::Packed64, [word]) if bytes == 8 => self.text.bits(word, 32, 0),
                // Inside the block of the inline assembly the word is put together by a mov before.
                (Layout::Packed128, [_]) if bytes == 16 => self.previous_word(instruction),
                (_, [word]) => self.text.bits(word, 0, 0),
                _ => None,
            };
            match found {
                Some(1) => return Ok(Some(Status::Aggregate)),
                Some(2) => return Ok(Some(Status::Prefix)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// The tag bits of the 128-bit word that a `mov.b128` on the same line puts together.
    fn previous_word(&self, store: &Instruction) -> Option<u8> {
        let mov = self.text.instructions.iter().find(|i| i.line == store.line && i.base() == "mov" && i.has("b128"))?;
        let parts = vector(mov.operands.get(1)?);
        let [_, high] = parts.as_slice() else { return None };
        self.text.bits(high, 0, 0)
    }

    fn descriptor_steps(
        &self,
        group: &Group<'_>,
        status: Option<Status>,
        slots: Option<&[BTreeMap<String, i64>]>,
    ) -> Result<Vec<Step>, ExtractError> {
        // Addresses within a word count from the lowest one of the group.
        let lowest = group
            .instructions
            .iter()
            .filter_map(|instruction| self.address(instruction).first().map(|sum| sum.constant))
            .min()
            .unwrap_or(0);
        group
            .instructions
            .iter()
            .map(|instruction| {
                let role = match instruction.base() {
                    "fence" | "membar" | "bar" | "barrier" => Role::Nothing,
                    _ if is_payload(instruction) => self.value_role(instruction, status, slots),
                    _ if self.layout == Layout::Split => Role::Tag,
                    _ => self.word_role(instruction, lowest)?,
                };
                self.step(instruction, role)
            })
            .collect()
    }

    fn value_role(
        &self,
        instruction: &Instruction,
        status: Option<Status>,
        slots: Option<&[BTreeMap<String, i64>]>,
    ) -> Role {
        let unknown = match status {
            Some(Status::Aggregate) => Role::Value { aggregate: 0, prefix: 0 },
            Some(Status::Prefix) => Role::Value { aggregate: 1, prefix: 1 },
            None => Role::Value { aggregate: 0, prefix: 1 },
        };
        let Some(slots) = slots else { return unknown };
        let number = |sum: &Sum| slots.iter().position(|array| *array == sum.array()).unwrap_or(slots.len());
        match self.address(instruction).as_slice() {
            [only] => Role::Value { aggregate: number(only), prefix: number(only) },
            [aggregate, prefix] => Role::Value { aggregate: number(aggregate), prefix: number(prefix) },
            _ => unknown,
        }
    }

    fn word_role(&self, instruction: &Instruction, lowest: i64) -> Result<Role, ExtractError> {
        let half = self.layout.half_bytes();
        let (bytes, elements) = width(instruction)?;
        let total = i64::from(bytes) * i64::from(elements);
        let offset = match self.address(instruction).as_slice() {
            [sum] => (sum.constant - lowest).rem_euclid(2 * half),
            _ => return Err(instruction.error("the address within the descriptor is not understood")),
        };
        if total % half != 0 || offset % half != 0 || offset + total > 2 * half || total == 0 {
            return Err(instruction.error("the width does not fit the descriptor's halves"));
        }
        Ok(Role::Word {
            first: u8::try_from(offset / half).unwrap_or(0),
            halves: u8::try_from(total / half).unwrap_or(2),
            elements: u8::try_from(elements).unwrap_or(1),
        })
    }

    fn step(&self, instruction: &Instruction, role: Role) -> Result<Step, ExtractError> {
        let kind = match instruction.base() {
            "ld" => StepKind::Load,
            "st" => StepKind::Store,
            "atom" | "red" => StepKind::Update,
            // membar is fence.sc (PTX ISA, membar).
            "membar" => StepKind::Fence(true),
            "fence" => StepKind::Fence(instruction.has("sc")),
            "bar" | "barrier" => {
                let number = instruction.operands.first().and_then(|operand| immediate(operand)).unwrap_or(0);
                StepKind::Barrier(u32::try_from(number).unwrap_or(0))
            }
            _ => return Err(instruction.error("no instruction of the protocol")),
        };
        let is_strong = instruction
            .opcode
            .iter()
            .any(|word| matches!(word.as_str(), "relaxed" | "acquire" | "release" | "acq_rel" | "volatile"));
        let semantics = if instruction.has("acq_rel") {
            Semantics::AcquireRelease
        } else if instruction.has("acquire") {
            Semantics::Acquire
        } else if instruction.has("release") {
            Semantics::Release
        } else if matches!(kind, StepKind::Fence(_)) {
            Semantics::AcquireRelease
        } else if is_strong || kind == StepKind::Update {
            Semantics::Relaxed
        } else {
            Semantics::Weak
        };
        let scope = if instruction.has("cta") {
            Scope::Cta
        } else if instruction.has("cluster") {
            Scope::Cluster
        } else if instruction.has("sys") || instruction.has("volatile") {
            Scope::System
        } else {
            Scope::Gpu
        };
        let source = instruction
            .frames
            .iter()
            .rev()
            .map(|frame| {
                let file = self.text.files.get(&frame.location.file).map_or("?", String::as_str);
                let name = file.rsplit('/').next().unwrap_or(file);
                let function = frame.function.iter().skip(1).cloned().collect::<Vec<_>>().join("::");
                format!("{function} ({name}:{})", frame.location.line)
            })
            .collect::<Vec<_>>()
            .join(" > ");
        Ok(Step { kind, role, semantics, scope, opcode: instruction.opcode.join("."), source })
    }
}

/// Whether two steps are the same but for where they stand in the source.
fn is_same_step(one: &Step, other: &Step) -> bool {
    Step { source: one.source.clone(), ..other.clone() } == *one
}

/// A loop that the compiler unrolled has its steps several times: once is what it does for one descriptor.
fn without_repetitions(mut steps: Vec<Step>) -> Vec<Step> {
    let repeats = |period: usize| {
        steps.len().is_multiple_of(period) && steps.iter().zip(&steps[period..]).all(|(a, b)| is_same_step(a, b))
    };
    let period = (1..steps.len()).find(|&period| repeats(period));
    if let Some(period) = period {
        steps.truncate(period);
    }
    steps
}

/// Whether an access is one of `store_payload` or `load_payload`, the plain ones of the protocol.
fn is_payload(instruction: &Instruction) -> bool {
    instruction.frame(&["memory", "store_payload"]).is_some()
        || instruction.frame(&["memory", "load_payload"]).is_some()
}

/// Bytes of one element, and the number of elements.
fn width(instruction: &Instruction) -> Result<(u32, u32), ExtractError> {
    let elements = if instruction.has("v2") {
        2
    } else if instruction.has("v4") {
        4
    } else {
        1
    };
    let bits = instruction.opcode.iter().rev().find_map(|word| {
        let digits = word.strip_prefix(['b', 'u', 's', 'f'])?;
        digits.parse::<u32>().ok()
    });
    bits.map(|bits| (bits / 8, elements)).ok_or_else(|| instruction.error("no width"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_from_mangled_names() {
        let path = |name: &str| path_of(name).join("::");
        assert_eq!(path("_ZNK8lookback5splitIjE7publishEyjjj"), "lookback::split::publish");
        assert_eq!(path("_ZNK8lookback9packed_64IjE4readEyj"), "lookback::packed_64::read");
        assert_eq!(
            path("_ZN8lookback6memory13store_payloadIjEEvPT_S2_NS_9call_siteE"),
            "lookback::memory::store_payload"
        );
        assert_eq!(path("_ZN8lookback6memory12load_relaxedEPKjNS_9call_siteE"), "lookback::memory::load_relaxed");
        assert_eq!(path("_ZN8lookback13block_barrierENS_9call_siteE"), "lookback::block_barrier");
        assert_eq!(
            path("_ZN8lookback4scan11finish_tileINS_5splitIjEEEEvRK15lookback_launchT_j"),
            "lookback::scan::finish_tile"
        );
        let lambda = "_ZZN8lookback4scan8lookbackINS_9operators3sumIjEENS_15constant_configILj1ELj64ELj0ELj0ELj0ELj2ELj0E\
                      EEEEvT0_RK15lookback_launchENKUlT_E_clINS_5splitIjEEEEDaS9_";
        assert_eq!(path(lambda), "lookback::scan::lookback::lambda");
        assert_eq!(path("lookback_entry"), "lookback_entry");
    }

    #[test]
    fn instructions_are_taken_apart() {
        let parse = |text: &str| parse_instruction(text).map(|(opcode, operands)| (opcode.join("."), operands));
        assert_eq!(
            parse("@%p3 ld.relaxed.gpu.v2.b32 {%r1, %r2}, [%rd1+4]"),
            Some((String::from("ld.relaxed.gpu.v2.b32"), vec![String::from("{%r1, %r2}"), String::from("[%rd1+4]")]))
        );
        let parts: Vec<&str> =
            statements("{ .reg .b128 word; mov.b128 word, {%rd8, %rd110}; st.b128 [%rd1], word; }").collect();
        assert_eq!(parts, [".reg .b128 word", "mov.b128 word, {%rd8, %rd110}", "st.b128 [%rd1], word", "}"]);
        assert_eq!(parse("}"), None);
    }

    #[test]
    fn text_without_line_information_is_refused() {
        assert_eq!(extract("ld.global.u32 %r1, [%rd1];"), Err(ExtractError::NoLineInfo));
        assert_eq!(extract(""), Err(ExtractError::NoLineInfo));
    }
}
