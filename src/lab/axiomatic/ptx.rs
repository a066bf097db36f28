//! PTX text with line information: its instructions, and the source functions that each was inlined from.

use std::collections::BTreeMap;

/// A place in a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Location {
    pub file: u32,
    pub line: u32,
    column: u32,
}

/// A function on the way to an instruction, and where in it the next one is called or the instruction stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub function: Vec<String>,
    pub location: Location,
    pub called_from: Option<Location>,
}

impl Frame {
    pub fn is(&self, path: &[&str]) -> bool {
        self.function.len() >= path.len()
            && self.function[self.function.len() - path.len()..].iter().zip(path).all(|(have, want)| have == want)
    }
}

/// One instruction.
#[derive(Debug, Clone)]
pub(super) struct Instruction {
    pub line: usize,
    /// The predicate under which it is executed, as `%p3` or `!%p3`.
    pub guard: Option<String>,
    pub opcode: Vec<String>,
    pub operands: Vec<String>,
    /// Innermost first.
    pub frames: Vec<Frame>,
}

impl Instruction {
    pub fn base(&self) -> &str {
        self.opcode.first().map_or("", String::as_str)
    }

    pub fn has(&self, qualifier: &str) -> bool {
        self.opcode.iter().any(|word| word == qualifier)
    }

    pub fn text(&self) -> String {
        format!("{} {}", self.opcode.join("."), self.operands.join(", "))
    }

    /// The frame of a function, by the end of its path.
    pub fn frame(&self, path: &[&str]) -> Option<&Frame> {
        self.frames.iter().find(|frame| frame.is(path))
    }

    /// Whether it accesses memory that threads share, or orders such accesses.
    pub fn is_of_interest(&self) -> bool {
        match self.base() {
            "ld" | "st" => !self.has("param") && !self.has("local") && !self.has("const"),
            "atom" | "red" | "fence" | "membar" | "bar" | "barrier" => true,
            _ => false,
        }
    }
}

/// A kernel's text.
pub(super) struct Text {
    pub instructions: Vec<Instruction>,
    pub files: BTreeMap<u32, String>,
    /// By label: the instruction behind it.
    pub labels: BTreeMap<String, usize>,
    /// By register: the instructions that define it.
    definitions: BTreeMap<String, Vec<usize>>,
}

impl Text {
    pub fn parse(ptx: &str) -> Self {
        let names = debug_strings(ptx);
        let (mut files, mut labels) = (BTreeMap::new(), BTreeMap::new());
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
            } else if let Some(label) = line.strip_suffix(':') {
                labels.insert(label.to_owned(), instructions.len());
            } else if !line.is_empty() && !line.starts_with('.') {
                for part in statements(line) {
                    if let Some((guard, opcode, operands)) = parse_instruction(part) {
                        let frames = frames_of(current, &known);
                        instructions.push(Instruction { line: index + 1, guard, opcode, operands, frames });
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
        Self { instructions, files, labels, definitions }
    }

    pub fn has_function(&self, path: &[&str]) -> bool {
        self.instructions.iter().any(|instruction| instruction.frame(path).is_some())
    }

    /// The one instruction that defines a register; nothing if several do.
    pub fn definition(&self, register: &str) -> Option<&Instruction> {
        match self.definitions.get(register)?.as_slice() {
            [only] => self.instructions.get(*only),
            _ => None,
        }
    }
}

/// The statements of one line, with the braces of a block around them taken away.
fn statements(line: &str) -> impl Iterator<Item = &str> {
    line.split(';').map(|part| {
        let part = part.trim();
        part.strip_prefix('{').filter(|rest| rest.trim_start().starts_with(".reg")).unwrap_or(part).trim()
    })
}

/// Guard, opcode words and operands. The protocol asks for no guard: what an instruction orders is not changed by it.
fn parse_instruction(text: &str) -> Option<(Option<String>, Vec<String>, Vec<String>)> {
    let (guard, text) = match text.strip_prefix('@') {
        Some(rest) => {
            let (guard, rest) = rest.split_once(char::is_whitespace)?;
            (Some(guard.to_owned()), rest.trim())
        }
        None => (None, text),
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
    Some((guard, opcode.split('.').map(str::to_owned).collect(), operands))
}

/// The parts of `{a, b}`; of anything else, itself.
pub(super) fn vector(operand: &str) -> Vec<&str> {
    operand.trim_matches(['{', '}']).split(',').map(str::trim).collect()
}

/// The registers that an operand which is written consists of: one, those of a vector, two with a `|` between.
fn registers(operand: &str) -> Vec<String> {
    vector(operand).into_iter().flat_map(|part| part.split('|')).map(str::to_owned).collect()
}

pub(super) fn immediate(operand: &str) -> Option<i64> {
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
        let parse = |text: &str| {
            parse_instruction(text)
                .map(|(guard, opcode, operands)| (guard.unwrap_or_default(), opcode.join("."), operands))
        };
        assert_eq!(
            parse("@%p3 ld.relaxed.gpu.v2.b32 {%r1, %r2}, [%rd1+4]"),
            Some((
                String::from("%p3"),
                String::from("ld.relaxed.gpu.v2.b32"),
                vec![String::from("{%r1, %r2}"), String::from("[%rd1+4]")]
            ))
        );
        let parts: Vec<&str> =
            statements("{ .reg .b128 word; mov.b128 word, {%rd8, %rd110}; st.b128 [%rd1], word; }").collect();
        assert_eq!(parts, [".reg .b128 word", "mov.b128 word, {%rd8, %rd110}", "st.b128 [%rd1], word", "}"]);
        assert_eq!(parse("}"), None);
    }
}
