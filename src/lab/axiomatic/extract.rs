//! The descriptor protocol of a kernel, read from its PTX.
//!
//! A kernel that NVRTC compiled with `--generate-line-info` says of each instruction which source line it comes
//! from, in which function, and through which calls that function was inlined (`.loc … function_name …, inlined_at
//! …`). So a store belongs to `split::publish` because the compiler says so. Semantics, scope, width and vector are in
//! the opcode; which half of a word, which slot and which counter is meant is in the address, followed back
//! through the arithmetic to the kernel's parameters; the status that a `publish` announces is followed back to the
//! constant, and what `descriptor_status` compares to the load whose tag it is. Nothing here knows what the orderings
//! ought to be.

use super::address::Sum;
use super::ptx::{Instruction, Location, Text, immediate, vector};
pub use super::reader::ExtractError;
use super::reader::{Extraction, error, width};
use super::sequences::{Counter, Layout, Protocol, Publish, Role, Sequences, Status, Step, StepKind};
use std::collections::{BTreeMap, BTreeSet};

/// Reads the protocol of a single-pass kernel, `lookback`, `chained`, `one_wave` or `lookahead` (for compute capability
/// 9.0 and later, where its barriers are mbarriers), from its PTX.
///
/// # Errors
/// When the text has no line information or is not such a kernel.
pub fn extract(ptx: &str) -> Result<Sequences, ExtractError> {
    let text = Text::parse(ptx);
    if text.instructions.iter().all(|instruction| instruction.frames.is_empty()) {
        return Err(ExtractError::NoLineInfo);
    }
    let protocol = Protocol::ALL
        .into_iter()
        .find(|protocol| text.has_function(&["scan", protocol.name]))
        .ok_or(ExtractError::Missing { what: "function scan of a single-pass kernel" })?;
    let layout = Layout::ALL
        .into_iter()
        .find(|layout| text.has_function(&[layout.name(), "publish"]))
        .ok_or(ExtractError::Missing { what: "publish" })?;
    Extraction { text: &text, protocol, layout }.run()
}

/// Instructions that one call of a function was inlined to.
struct Group<'a> {
    site: Option<Location>,
    instructions: Vec<&'a Instruction>,
}

/// What is known of all descriptors before their steps are read.
struct Known {
    /// [`Extraction::slots`]
    slots: Option<Vec<BTreeMap<String, i64>>>,
    /// Bytes of a packed one.
    bytes: i64,
    /// [`Extraction::asked`]
    asked: BTreeSet<usize>,
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
        let bytes = self.descriptor_bytes(publishes.iter().chain(&reads).chain(&invalidates));
        let known = Known { slots: self.slots(&publishes, &reads), bytes, asked: self.asked(bytes) };
        let words = usize::try_from(bytes / (2 * self.layout.half_bytes())).unwrap_or(1);
        let has_all_words =
            |steps: &[Step]| (0..words).all(|word| steps.iter().any(|step| step.role.word() == Some(word)));
        let mut found = Vec::new();
        for (index, group) in publishes.iter().enumerate() {
            let default = self.protocol.default_status(index, publishes.len());
            let status = self.status(group)?.unwrap_or(default);
            let steps = self.descriptor_steps(group, Some(status), &known)?;
            if words > 1 && !has_all_words(&steps) {
                return Err(ExtractError::Missing { what: "store of every word in publish" });
            }
            found.push(Publish { status, steps });
        }
        let mut read_steps: Vec<Vec<Step>> = Vec::new();
        for group in &reads {
            let steps = without_repetitions(self.descriptor_steps(group, None, &known)?);
            let same = |other: &Vec<Step>| {
                other.len() == steps.len() && other.iter().zip(&steps).all(|(one, other)| is_same_step(one, other))
            };
            if !read_steps.iter().any(same) {
                read_steps.push(steps);
            }
        }
        // A read whose value nobody uses decides nothing. The compiler took the load of its value from it, or of several words the
        // comparison of their tags. One that shares the load of a later word with another read, where the compiler let both go on
        // in the same place, is that other one.
        let is_whole = |steps: &Vec<Step>| match self.layout {
            Layout::Split => steps.iter().any(|step| matches!(step.role, Role::Value { .. })),
            _ => has_all_words(steps),
        };
        if words > 1 && !read_steps.iter().any(is_whole) {
            return Err(ExtractError::Missing { what: "load of every word in read" });
        }
        let is_asked = |steps: &Vec<Step>| {
            let has_asked_word = steps.iter().any(|step| matches!(step.role, Role::Word { is_asked: true, .. }));
            self.layout == Layout::Split || has_asked_word
        };
        for decides in [&is_whole as &dyn Fn(&Vec<Step>) -> bool, &is_asked] {
            // Where none does, a fault took it from all.
            if read_steps.iter().any(decides) {
                read_steps.retain(decides);
            }
        }
        // An unrolled loop has the sequence several times; one clears one descriptor.
        let invalidate = match invalidates.first() {
            Some(group) => {
                let mut steps = self.descriptor_steps(group, None, &known)?;
                steps.truncate(words);
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
            let name = self.protocol.name;
            // Called by the kernel itself or by its lambda, not by one of its helpers.
            let caller = instruction.frames.get(1).or(instruction.frames.first());
            caller.is_some_and(|frame| frame.is(&["scan", name]) || frame.is(&["scan", name, "lambda"]))
        };
        let in_function =
            |name: &str| interesting().filter(|i| i.frame(&["scan", name]).is_some()).collect::<Vec<&Instruction>>();
        let is_staying = self.protocol == Protocol::LOOK_AHEAD;
        let tasks = ["fetch_tiles", "publish_aggregates", "find_prefixes", "scan_tiles_ahead"];
        let has_task = |i: &Instruction| tasks.iter().any(|name| i.frame(&["scan", name]).is_some());
        let start: Vec<&Instruction> = if is_staying {
            // A fence between proxies orders nothing here.
            let is_first = |i: &&Instruction| !has_task(i) && !i.has("proxy");
            in_function(self.protocol.name).into_iter().filter(is_first).collect()
        } else {
            in_function("start_tile")
        };
        let is_invalidate = |i: &Instruction| i.frame(&[self.layout.name(), "invalidate"]).is_some();
        let finish: Vec<&Instruction> = in_function("finish_tile").into_iter().filter(|i| !is_invalidate(i)).collect();
        let counted = finish.iter().position(|i| matches!(i.base(), "atom" | "red"));
        let counted = counted.ok_or(ExtractError::Missing { what: "count of finished blocks" })?;
        let last_publish = groups.iter().flat_map(|g| g.instructions.iter().map(|i| i.line)).max().unwrap_or(0);
        let finish_line = finish[counted].line;
        let is_load = |i: &Instruction| i.base() == "ld" && i.has("shared");
        let hand_over: Vec<&Instruction> = interesting()
            .filter(|i| !is_staying && i.line > last_publish && i.line < finish_line && kernel(i) && !is_load(i))
            .collect();
        // The prefix is read behind the barrier, before the count or after it.
        let result: Vec<&Instruction> = interesting()
            .filter(|i| !is_staying && i.line > last_publish && kernel(i) && i.has("shared"))
            .filter(|i| is_load(i) || i.line > finish_line)
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
            protocol: self.protocol,
            layout: self.layout,
            start: steps(&start)?,
            publishes,
            reads,
            hand_over: steps(&hand_over)?,
            finish: steps(&finish[..=counted])?,
            invalidate,
            resets: steps(&finish[counted + 1..])?,
            result: steps(&result)?,
            ring: is_staying.then(|| super::ring::extract(self)).transpose()?,
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
            let status = found.and_then(|bits| Status::of_tag(bits.into()));
            if status.is_some() {
                return Ok(status);
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

    /// The constant parts of the addresses of a group.
    fn offsets(&self, group: &Group<'_>) -> impl Iterator<Item = i64> {
        group.instructions.iter().filter_map(|instruction| self.address(instruction).first().map(|sum| sum.constant))
    }

    /// Bytes of a packed descriptor: the most that an address multiplies an index by. Of others part of it is in the index.
    fn descriptor_bytes<'g>(&self, groups: impl Iterator<Item = &'g Group<'a>>) -> i64
    where
        'a: 'g,
    {
        let word = 2 * self.layout.half_bytes();
        let accesses = groups.filter(|_| self.layout != Layout::Split).flat_map(|group| &group.instructions);
        let strides = accesses.flat_map(|instruction| self.address(instruction)).filter_map(|sum| sum.stride());
        strides.filter(|stride| *stride > 0 && stride % word == 0).max().unwrap_or(word)
    }

    /// The lines of the loads whose tags `descriptor_status` compares with the epoch; where a descriptor has several words, of those
    /// whose status `read` then compares with that of another word.
    fn asked(&self, bytes: i64) -> BTreeSet<usize> {
        let comparisons_in = |path: &'static [&'static str]| {
            let is_there =
                move |i: &&Instruction| i.frames.first().is_some_and(|frame| frame.is(path)) && i.base() == "setp";
            self.text.instructions.iter().filter(is_there)
        };
        let loads = |i: &Instruction| -> BTreeSet<usize> {
            let operands = i.operands.iter().skip(1);
            operands.filter_map(|operand| self.text.origin(operand, 0)).map(|load| load.line).collect()
        };
        let with_epoch: BTreeSet<usize> = comparisons_in(&["lookback", "descriptor_status"]).flat_map(&loads).collect();
        if bytes == 2 * self.layout.half_bytes() {
            return with_epoch;
        }
        let with_each_other = comparisons_in(&["packed_128", "read"]).map(loads).filter(|lines| lines.len() > 1);
        let with_each_other: BTreeSet<usize> = with_each_other.flatten().collect();
        &with_epoch & &with_each_other
    }

    fn descriptor_steps(
        &self,
        group: &Group<'_>,
        status: Option<Status>,
        known: &Known,
    ) -> Result<Vec<Step>, ExtractError> {
        // Addresses within a descriptor count from the lowest one of the group.
        let lowest = self.offsets(group).min().unwrap_or(0);
        group
            .instructions
            .iter()
            .map(|instruction| {
                let role = match instruction.base() {
                    "fence" | "membar" | "bar" | "barrier" => Role::Nothing,
                    _ if is_payload(instruction) => self.value_role(instruction, status, known.slots.as_deref()),
                    _ if self.layout == Layout::Split => Role::Tag,
                    _ => self.word_role(instruction, lowest, known)?,
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

    fn word_role(&self, instruction: &Instruction, lowest: i64, known: &Known) -> Result<Role, ExtractError> {
        let half = self.layout.half_bytes();
        let (bytes, elements) = width(instruction)?;
        let total = i64::from(bytes) * i64::from(elements);
        let within = match self.address(instruction).as_slice() {
            [sum] => (sum.constant - lowest).rem_euclid(known.bytes),
            _ => return Err(error(instruction, "the address within the descriptor is not understood")),
        };
        let (word, offset) = (within / (2 * half), within % (2 * half));
        if total % half != 0 || offset % half != 0 || offset + total > 2 * half || total == 0 {
            return Err(error(instruction, "the width does not fit the descriptor's halves"));
        }
        Ok(Role::Word {
            word: u8::try_from(word).map_err(|_| error(instruction, "the descriptor has too many words"))?,
            first: u8::try_from(offset / half).unwrap_or(0),
            halves: u8::try_from(total / half).unwrap_or(2),
            elements: u8::try_from(elements).unwrap_or(1),
            is_asked: known.bytes == 2 * half || known.asked.contains(&instruction.line),
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
            _ => return Err(error(instruction, "no instruction of the protocol")),
        };
        let (semantics, scope) = self.order_of(instruction);
        Ok(Step {
            kind,
            role,
            semantics,
            scope,
            opcode: instruction.opcode.join("."),
            source: self.source(instruction),
        })
    }
}

/// Whether two steps are the same but for where they stand in the source.
fn is_same_step(one: &Step, other: &Step) -> bool {
    Step { source: one.source.clone(), ..other.clone() } == *one
}

/// A loop that the compiler unrolled has its steps several times: once is what it does for one descriptor.
fn without_repetitions(mut steps: Vec<Step>) -> Vec<Step> {
    // A word's load that the compiler put into both arms of a branch is one load, too.
    steps.dedup_by(|step, before| matches!(step.role, Role::Word { .. }) && is_same_step(step, before));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_line_information_is_refused() {
        assert_eq!(extract("ld.global.u32 %r1, [%rd1];"), Err(ExtractError::NoLineInfo));
        assert_eq!(extract(""), Err(ExtractError::NoLineInfo));
    }
}
