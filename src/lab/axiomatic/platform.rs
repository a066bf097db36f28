//! What only a GPU runs (`cuda/gpu`), read from a kernel's PTX: whether its fences, barriers and copies stand in the order
//! that they rest on, with the operands that belong together. No run without a GPU reaches them. The rules are stated of
//! every path through the kernel, not of the order of the text; docs/memory-model.md says why they are enough.

use super::ptx::{Instruction, Text};
use std::collections::{BTreeMap, BTreeSet};

/// What was looked at, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Platform {
    /// How many of what was found: a rule about something that is not there says nothing.
    pub found: BTreeMap<&'static str, usize>,
    /// A sentence each, with the line of the PTX.
    pub violations: Vec<String>,
}

/// Looks at a kernel that was compiled with line information. With `has_programmatic_launch` it must wait for the launches
/// before it.
pub fn check_ptx(ptx: &str, has_programmatic_launch: bool) -> Platform {
    let body = ptx.find(".entry").map_or("", |entry| &ptx[entry..]);
    // Names of functions stand behind the code, so all of the text is read; no code stands before the entry.
    let text = Text::parse(ptx);
    let mut checks = Checks { graph: Graph::new(&text), text: &text, platform: Platform::default() };
    if body.is_empty() {
        checks.wrong_at(None, "there is no kernel");
    }
    if has_programmatic_launch {
        checks.launch();
    }
    for index in 0..text.instructions.len() {
        checks.instruction(index);
    }
    checks.platform
}

/// Which instruction can come behind which.
pub(super) struct Graph {
    pub(super) after: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
    /// Where branches lead.
    targets: BTreeSet<usize>,
}

impl Graph {
    pub(super) fn new(text: &Text) -> Self {
        let count = text.instructions.len();
        let mut graph =
            Self { after: vec![Vec::new(); count], before: vec![Vec::new(); count], targets: BTreeSet::new() };
        for (index, instruction) in text.instructions.iter().enumerate() {
            let is_branch = instruction.base() == "bra";
            if is_branch && let Some(target) = text.target(instruction) {
                graph.targets.insert(target);
                graph.connect(index, target);
            }
            let ends = is_branch || matches!(instruction.base(), "ret" | "exit" | "trap");
            if !ends || instruction.guard.is_some() {
                graph.connect(index, index + 1);
            }
        }
        graph
    }

    fn connect(&mut self, from: usize, to: usize) {
        if to < self.before.len() {
            self.after[from].push(to);
            self.before[to].push(from);
        }
    }
}

impl Text {
    fn target(&self, branch: &Instruction) -> Option<usize> {
        self.labels.get(branch.operands.first()?).copied()
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Forward,
    Backward,
}

/// What a path meets.
enum Met {
    /// What it should: it goes no further.
    Sought,
    /// What must not come first.
    Wrong,
    /// Something else.
    Other,
}

struct Checks<'a> {
    graph: Graph,
    text: &'a Text,
    platform: Platform,
}

/// The address in brackets.
fn address(operand: &str) -> &str {
    operand.trim_matches(['[', ']'])
}

/// An access to the shared memory of the block, or to an address that may lie there.
fn may_access_shared(instruction: &Instruction) -> bool {
    let elsewhere = ["global", "param", "local", "const"];
    matches!(instruction.base(), "ld" | "st" | "atom" | "red") && !elsewhere.iter().any(|space| instruction.has(space))
}

fn accesses_memory(instruction: &Instruction) -> bool {
    let is_own = ["param", "local", "const"].iter().any(|space| instruction.has(space));
    match instruction.base() {
        "ld" | "st" => !is_own,
        "atom" | "red" | "cp" | "mbarrier" | "multimem" | "prefetch" => true,
        _ => false,
    }
}

/// Lanes meet, or threads.
fn is_collective(instruction: &Instruction) -> bool {
    matches!(instruction.base(), "shfl" | "vote" | "redux" | "match" | "bar" | "barrier")
}

fn is_warp_barrier(instruction: &Instruction) -> bool {
    instruction.base() == "bar" && instruction.has("warp")
}

fn is_copy(instruction: &Instruction) -> bool {
    instruction.base() == "cp" && instruction.has("bulk")
}

fn expects(instruction: &Instruction) -> bool {
    instruction.base() == "mbarrier" && instruction.has("expect_tx")
}

fn is_proxy_fence(instruction: &Instruction) -> bool {
    instruction.base() == "fence"
        && instruction.has("proxy")
        && instruction.has("async")
        // Without a word for it, of all memory.
        && (instruction.has("shared::cta") || instruction.opcode.last().is_some_and(|word| word == "async"))
}

/// The function that the instruction stands in, as the source has it.
fn function(instruction: &Instruction) -> &str {
    instruction.frames.first().and_then(|frame| frame.function.last()).map_or("", String::as_str)
}

fn is_called_from(instruction: &Instruction, name: &str) -> bool {
    instruction.frame(&["lookback", name]).is_some()
}

impl Checks<'_> {
    fn wrong_at(&mut self, index: Option<usize>, sentence: &str) {
        let place = index.map_or(String::new(), |index| {
            let instruction = &self.text.instructions[index];
            format!("line {} of the PTX, '{}': ", instruction.line, instruction.text())
        });
        self.platform.violations.push(format!("{place}{sentence}"));
    }

    fn count(&mut self, what: &'static str) {
        *self.platform.found.entry(what).or_default() += 1;
    }

    fn require(&mut self, index: usize, holds: bool, sentence: &str) {
        if !holds {
            self.wrong_at(Some(index), sentence);
        }
    }

    /// Whether every path from an instruction meets what is sought before what is wrong, and before its end.
    fn always(&self, from: usize, direction: Direction, met: impl Fn(usize, &Instruction) -> Met) -> bool {
        let next = match direction {
            Direction::Forward => &self.graph.after,
            Direction::Backward => &self.graph.before,
        };
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            if next[at].is_empty() {
                return false;
            }
            for &index in &next[at] {
                match met(index, &self.text.instructions[index]) {
                    Met::Sought => {}
                    Met::Wrong => return false,
                    Met::Other if seen.insert(index) => open.push(index),
                    Met::Other => {}
                }
            }
        }
        true
    }

    /// Whether two operands hold one value: one register, or the same sum of other registers.
    fn are_same(&self, one: &str, other: &str) -> bool {
        one == other || self.text.sums(one, 0) == self.text.sums(other, 0)
    }

    /// Every thread waits for the launches before, and touches nothing before that.
    fn launch(&mut self) {
        for (index, instruction) in self.text.instructions.iter().enumerate() {
            let is_wait = instruction.base() == "griddepcontrol" && instruction.has("wait");
            if is_wait && instruction.guard.is_none() && !self.graph.targets.contains(&index) {
                return self.count("waits for launches");
            }
            let divides = matches!(instruction.base(), "bra" | "ret" | "exit") || self.graph.targets.contains(&index);
            if is_wait || divides || accesses_memory(instruction) || is_collective(instruction) {
                return self.wrong_at(Some(index), "comes before all threads have waited for the launches before");
            }
        }
        self.wrong_at(None, "nothing waits for the launches before");
    }

    fn instruction(&mut self, index: usize) {
        let instruction = &self.text.instructions[index];
        match instruction.base() {
            "mbarrier" if instruction.has("arrive") => self.arrival(index),
            "mbarrier" if instruction.has("try_wait") || instruction.has("test_wait") => self.wait(index),
            "mbarrier" if instruction.has("init") => self.initialisation(index),
            "cp" if is_copy(instruction) => self.copy(index),
            "st" if instruction.has("async") => self.store_async(index),
            "barrier" if instruction.has("cluster") => self.cluster_barrier(index),
            "atom" if function(instruction) == "barrier_arrive" => self.counted_arrival(index),
            "ld" if function(instruction) == "barrier_phase_is_over" => {
                self.count("waits");
                let holds = instruction.has("acquire") && instruction.has("cta");
                self.require(index, holds, "a wait must acquire what its block did");
                self.lanes_meet_behind(index);
            }
            _ => {}
        }
    }

    fn arrival(&mut self, index: usize) {
        self.count("arrivals");
        let instruction = &self.text.instructions[index];
        let holds = instruction.has("release") && instruction.has("cta");
        self.require(index, holds, "an arrival must release to its block");
        self.lanes_meet_before(index);
    }

    /// An arrival for what all lanes stored before a copy.
    fn lanes_meet_before(&mut self, index: usize) {
        if !is_called_from(&self.text.instructions[index], "copy_and_arrive") {
            return;
        }
        let meets = self.always(index, Direction::Backward, |_, other| {
            if is_warp_barrier(other) {
                Met::Sought
            } else if accesses_memory(other) || is_collective(other) {
                Met::Wrong
            } else {
                Met::Other
            }
        });
        self.require(index, meets, "the lanes must meet before one of them arrives for all");
    }

    fn wait(&mut self, index: usize) {
        self.count("waits");
        let instruction = &self.text.instructions[index];
        let scope = if function(instruction) == "barrier_wait_for_cluster" { "cluster" } else { "cta" };
        let holds = instruction.has("acquire") && instruction.has(scope);
        self.require(index, holds, &format!("a wait must acquire, with scope {scope}"));
        self.require(index, self.repeats_while_not_over(index), "the wait must go on until the phase is over");
        self.lanes_meet_behind(index);
    }

    /// Whether a wait is the loop `do over = wait; while (over == 0)`.
    fn repeats_while_not_over(&self, wait: usize) -> bool {
        let all = &self.text.instructions;
        let over = &all[wait].operands[0];
        let Some(number) = all.get(wait + 1).filter(|next| next.base() == "selp") else { return false };
        if number.operands.get(1..) != Some(&[String::from("1"), String::from("0"), over.clone()]) {
            return false;
        }
        let Some(branch) = (wait + 2..all.len()).find(|&at| all[at].base() == "bra") else { return false };
        let Some(guard) = &all[branch].guard else { return false };
        let (is_negated, predicate) = guard.strip_prefix('!').map_or((false, guard.as_str()), |rest| (true, rest));
        let Some(comparison) = self.text.definition(predicate).filter(|definition| definition.base() == "setp") else {
            return false;
        };
        if comparison.operands.get(1..) != Some(&[number.operands[0].clone(), String::from("0")]) {
            return false;
        }
        let is_taken_at_zero = (comparison.has("eq"), comparison.has("ne"), is_negated);
        let is_taken_at_zero = match is_taken_at_zero {
            (true, false, negated) => !negated,
            (false, true, negated) => negated,
            _ => return false,
        };
        let leads_back = self.text.target(&all[branch]).is_some_and(|target| target <= wait);
        leads_back == is_taken_at_zero
    }

    /// Lanes may come back from a wait one by one.
    fn lanes_meet_behind(&mut self, index: usize) {
        let meets = self.always(index, Direction::Forward, |at, other| {
            if is_warp_barrier(other) {
                Met::Sought
            } else if at != index && (accesses_memory(other) || is_collective(other)) {
                Met::Wrong
            } else {
                Met::Other
            }
        });
        self.require(index, meets, "the lanes must meet behind a wait");
    }

    fn initialisation(&mut self, index: usize) {
        self.count("initialisations");
        let has = |wanted: fn(&Instruction) -> bool| self.text.instructions.iter().any(wanted);
        let has_copies = has(is_copy);
        let has_stores = has(|instruction| instruction.base() == "st" && instruction.has("async"));
        let fence_comes_first = |is_fence: fn(&Instruction) -> bool| {
            self.always(index, Direction::Forward, |_, other| {
                let hands_over = is_collective(other) || (other.base() == "mbarrier" && !other.has("init"));
                if is_fence(other) {
                    Met::Sought
                } else if hands_over || is_copy(other) {
                    Met::Wrong
                } else {
                    Met::Other
                }
            })
        };
        let for_copies = !has_copies || fence_comes_first(is_proxy_fence);
        let for_cluster = !has_stores
            || fence_comes_first(|other| {
                other.base() == "fence" && ["mbarrier_init", "release", "cluster"].iter().all(|word| other.has(word))
            });
        self.require(index, for_copies, "a fence must show the barrier to the copy engine before others use it");
        self.require(index, for_cluster, "a fence must show the barrier to the cluster before others use it");
    }

    fn copy(&mut self, index: usize) {
        self.count("copies");
        // Destination, source, size, barrier.
        let [_, _, size, barrier] = &self.text.instructions[index].operands[..] else {
            return self.wrong_at(Some(index), "a copy has four operands");
        };
        let is_fenced = self.always(index, Direction::Backward, |_, other| {
            let is_access = may_access_shared(other) || other.base() == "mbarrier";
            if is_proxy_fence(other) {
                Met::Sought
            } else if is_access || is_collective(other) || is_copy(other) {
                Met::Wrong
            } else {
                Met::Other
            }
        });
        let is_expected = self.always(index, Direction::Backward, |_, other| {
            // `_` for the state, of arrivals alone; the barrier, the size.
            let operands = other.operands.iter().rev().map(String::as_str).collect::<Vec<_>>();
            if expects(other) {
                let [expected, counted_by, ..] = operands[..] else { return Met::Wrong };
                let is_same = self.are_same(expected, size) && self.are_same(address(counted_by), address(barrier));
                if is_same { Met::Sought } else { Met::Wrong }
            } else if is_copy(other) {
                Met::Wrong
            } else {
                Met::Other
            }
        });
        self.require(
            index,
            is_fenced,
            "a fence must stand between the threads' accesses to a stage and a copy into it",
        );
        self.require(index, is_expected, "the barrier of a copy must expect just its bytes before it begins");
    }

    fn store_async(&mut self, index: usize) {
        self.count("asynchronous stores");
        let operands = &self.text.instructions[index].operands;
        let of_block = |operand: Option<&String>| {
            let definition =
                self.text.definition(address(operand?)).filter(|definition| definition.base() == "mapa")?;
            Some((definition.operands.get(1)?.clone(), definition.operands.get(2)?.clone()))
        };
        let both = (of_block(operands.first()), of_block(operands.last()));
        let holds = matches!(&both, (Some((stored, there)), Some((barrier, counted)))
            if there == counted && !self.are_same(stored, barrier));
        self.require(index, holds, "a store into another block is counted by a barrier of that block");
    }

    fn cluster_barrier(&mut self, index: usize) {
        self.count("cluster barriers");
        let instruction = &self.text.instructions[index];
        let order = match function(instruction) {
            "cluster_barrier_arrive" => "release",
            "cluster_barrier_arrive_relaxed" => "relaxed",
            _ => "acquire",
        };
        let holds = instruction.has(order) && instruction.has("wait") == (order == "acquire");
        self.require(index, holds, &format!("'{}' must be .{order}", function(instruction)));
        let meeting = (0..index).rev().find(|&at| is_warp_barrier(&self.text.instructions[at]));
        let is_together = meeting.is_some_and(|meeting| {
            let between = meeting + 1..index;
            between.clone().all(|at| self.text.instructions[at].base() != "bra")
                && !(between.start..=index).any(|at| self.graph.targets.contains(&at))
        });
        self.require(index, !instruction.has("aligned") || is_together, "all lanes must come here together");
    }

    /// Two counters in place of an mbarrier: count, reset, read the phase, store the next one.
    fn counted_arrival(&mut self, index: usize) {
        self.count("arrivals");
        let all = &self.text.instructions;
        let mine = &all[index];
        let holds = mine.has("acq_rel") && mine.has("cta") && mine.has("add");
        self.lanes_meet_before(index);
        self.require(index, holds, "an arrival must release what its thread did, and acquire what others did");
        let rest: Vec<&Instruction> = all[index + 1..]
            .iter()
            .filter(|other| function(other) == "barrier_arrive" && other.has("cta"))
            .take(3)
            .collect();
        let is_sequence = matches!(rest[..], [reset, read, store]
            if reset.base() == "st" && reset.has("relaxed") && reset.has("cta")
                && self.are_same(address(&reset.operands[0]), address(&mine.operands[1]))
                && self.text.sums(&reset.operands[1], 0) == self.text.sums("0", 0)
                && read.base() == "ld" && read.has("relaxed") && read.has("cta")
                && store.base() == "st" && store.has("release") && store.has("cta")
                && self.are_same(address(&store.operands[0]), address(&read.operands[1])));
        self.require(index, is_sequence, "the count must be 0 again before the phase is over, which releases");
    }
}
