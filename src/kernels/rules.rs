//! The faults that follow from what stands in a kernel, without anybody thinking of them: each barrier, wait and arrival
//! dropped, each order weakened, each scope narrowed, each loop a round short, each vote or sum of a warp without one of
//! its parts. A kernel file that is added tomorrow has them, too.
//!
//! A loop is never made longer: the host's compiler may do anything with an index behind the end of an array.

use super::{Form, Source};
use std::ops::Range;

/// Bytes of the kernel, and what is woven in there.
pub type Woven = (Range<usize>, Form, String);

/// What follows from a rule at one place.
pub struct Derived {
    /// By function and what it does to what, numbered where the function has several.
    pub name: String,
    /// Where it is, with its struct.
    pub function: String,
    /// What it breaks, as `when` says it.
    pub kind: &'static str,
    /// Which rule.
    pub rule: &'static str,
    /// What it is, in a few words.
    pub text: String,
    /// What is woven in.
    pub edits: Vec<Woven>,
}

/// What a rule does to each call of an operation.
enum Change {
    /// The statement is left out.
    Dropped,
    /// It is done behind the wait before it, or where its block begins: before what it covers.
    Early,
    /// It is done behind the statement that follows it: behind what it comes before.
    Late,
    /// It is done by those threads alone for which this holds.
    Only(&'static str),
    /// A statement stands before it, with the arguments for {0} and {1}.
    Behind(&'static str),
    /// Another operation is called instead.
    Becomes(&'static str),
    /// The first argument loses the bits that are not in this mask, and the others stay.
    FirstArgument(&'static str),
    /// The last argument changes by these bits.
    LastArgument(&'static str),
    /// The result loses the bits that are not in this mask.
    Result(&'static str),
}

/// Operation, rule, what goes wrong, kind.
const CALLS: &[(&str, &str, Change, &str)] = {
    use Change::{Becomes, Behind, Dropped, Early, FirstArgument, LastArgument, Late, Only, Result};
    &[
        ("block_barrier", "dropped", Dropped, "barrier"),
        ("warp_barrier", "dropped", Dropped, "barrier"),
        ("barrier", "dropped", Dropped, "barrier"),
        ("barrier_wait", "dropped", Dropped, "barrier"),
        ("barrier_wait_for_cluster", "dropped", Dropped, "barrier"),
        ("cluster_barrier_wait", "dropped", Dropped, "barrier"),
        ("barriers_initialized", "dropped", Dropped, "barrier"),
        ("barriers_initialized_for_cluster", "dropped", Dropped, "barrier"),
        ("barrier_arrive", "dropped", Dropped, "barrier"),
        ("barrier_arrive_expecting", "dropped", Dropped, "barrier"),
        ("cluster_barrier_arrive", "dropped", Dropped, "barrier"),
        ("cluster_barrier_arrive_relaxed", "dropped", Dropped, "barrier"),
        ("barrier_arrive", "early", Early, "barrier"),
        ("barrier_arrive_expecting", "early", Early, "barrier"),
        ("cluster_barrier_arrive", "early", Early, "barrier"),
        ("cluster_barrier_arrive", "weakened", Becomes("cluster_barrier_arrive_relaxed"), "barrier"),
        ("barrier_wait", "weakened", Becomes("barrier_wait_relaxed"), "ordering"),
        ("barrier_wait_for_cluster", "weakened", Becomes("barrier_wait_for_cluster_relaxed"), "ordering"),
        ("barrier_arrive", "weakened", Becomes("barrier_arrive_relaxed"), "ordering"),
        ("barrier_arrive_expecting", "weakened", Becomes("barrier_arrive_expecting_relaxed"), "ordering"),
        ("copy_and_arrive", "weakened", Becomes("copy_and_arrive_relaxed"), "ordering"),
        ("wait_for_launches_before", "dropped", Dropped, "barrier"),
        ("wait_for_launches_before", "late", Late, "barrier"),
        ("wait_for_launches_before", "by_one_thread", Only("thread_index() == 0"), "barrier"),
        ("allow_next_launch", "dropped", Dropped, "barrier"),
        ("allow_next_launch", "late", Late, "barrier"),
        ("fence_acquire_release", "dropped", Dropped, "ordering"),
        ("fence_acquire_release", "narrowed", Becomes("fence_acquire_release_block"), "ordering"),
        ("load_acquire", "weakened", Becomes("load_relaxed"), "ordering"),
        ("load_acquire", "narrowed", Becomes("load_acquire_block"), "ordering"),
        ("store_release", "weakened", Becomes("store_relaxed"), "ordering"),
        ("store_release", "narrowed", Becomes("store_release_block"), "ordering"),
        ("fetch_add_acquire_release", "weakened", Becomes("fetch_add_relaxed"), "ordering"),
        ("fetch_add_acquire_release", "narrowed", Becomes("fetch_add_acquire_release_block"), "ordering"),
        ("load_relaxed", "narrowed", Becomes("load_relaxed_block"), "ordering"),
        ("store_relaxed", "narrowed", Becomes("store_relaxed_block"), "ordering"),
        ("fetch_add_relaxed", "narrowed", Becomes("fetch_add_relaxed_block"), "ordering"),
        ("ballot", "without_a_lane", Result("0x7fffffffu"), "algorithm"),
        ("lanes_with_byte", "without_a_lane", Result("0x7fffffffu"), "algorithm"),
        ("add_over_warp_each", "without_a_lane", Behind(LOSE_LAST_LANE), "algorithm"),
        ("add_bytes", "without_a_byte", FirstArgument("0x00ffffffu"), "algorithm"),
        ("add_lower_bytes", "without_a_byte", FirstArgument("0x000000ffu"), "algorithm"),
        ("add_halves", "without_a_half", FirstArgument("0x0000ffffu"), "algorithm"),
        ("select_bytes", "of_another_place", LastArgument("0x1u"), "algorithm"),
    ]
};

const LOSE_LAST_LANE: &str = "for (u32 i = 0; i < {1}; ++i) if (lane_index() == LOOKBACK_WARP_LANES - 1) {0}[i] = 0;";

/// The rule of loops.
const ROUND_SHORT: &str = "a_round_short";

/// All of a kernel file, in the order of its lines.
pub(super) fn derive(source: &Source<'_>) -> Vec<Derived> {
    let mut all: Vec<(usize, Derived)> = Vec::new();
    let mut functions: Vec<_> = source.functions.iter().collect();
    functions.sort_by_key(|(_, body)| body.start);
    for (function, body) in functions {
        for at in body.clone() {
            let place = Call::at(source, at, body);
            for (_, rule, change, kind) in CALLS.iter().filter(|(operation, ..)| *operation == source.word(at)) {
                if let Some(call) = &place
                    && let Some(edits) = call.edits(source, change)
                {
                    let (what, text) = (source.word(at), on_one_line(&source.text[call.whole.clone()]));
                    all.push((at, derived(function, what, rule, kind, format!("{}: `{text}`", words(rule)), edits)));
                }
            }
            if let Some((edit, text)) = loop_a_round_short(source, at) {
                let text = format!("{}: `{text}`", words(ROUND_SHORT));
                all.push((at, derived(function, "loop", ROUND_SHORT, "algorithm", text, vec![edit])));
            }
        }
    }
    number(&mut all);
    all.into_iter().map(|(_, derived)| derived).collect()
}

fn words(rule: &str) -> String {
    rule.replace('_', " ")
}

fn derived(
    function: &str,
    what: &str,
    rule: &'static str,
    kind: &'static str,
    text: String,
    edits: Vec<Woven>,
) -> Derived {
    let name = format!("{}_{what}", function.replace("::", "_")).to_lowercase();
    Derived { name, function: function.to_owned(), kind, rule, text, edits }
}

/// Gives the faults their names: what stands in a function more than once is numbered. Specializations share a name.
fn number(faults: &mut [(usize, Derived)]) {
    let stems: Vec<(usize, String)> = faults.iter().map(|(at, fault)| (*at, fault.name.clone())).collect();
    for (at, fault) in faults {
        let mut places: Vec<usize> = stems.iter().filter(|(_, stem)| *stem == fault.name).map(|(at, _)| *at).collect();
        places.dedup();
        if places.len() > 1 {
            let number = 1 + places.iter().position(|place| place == at).unwrap_or(0);
            fault.name = format!("{}_{number}", fault.name);
        }
        fault.name = format!("{}_{}", fault.name, fault.rule);
    }
}

/// A call in a function.
struct Call {
    /// The bytes from its first qualifier to its parenthesis.
    whole: Range<usize>,
    /// Those of its name alone.
    name: Range<usize>,
    /// Those of its arguments.
    arguments: Vec<Range<usize>>,
    /// The bytes of the statement that is this call and nothing else, with its semicolon.
    statement: Option<Range<usize>>,
    /// Where it would be done early: the bytes there, and of the statement with the condition before it.
    early: Option<(usize, Range<usize>)>,
    /// Likewise where it would be done late.
    late: Option<(usize, Range<usize>)>,
}

impl Call {
    /// The call of the function whose name is token `at`, if it is one.
    fn at(source: &Source<'_>, at: usize, body: &Range<usize>) -> Option<Self> {
        let word = |index: usize| source.word(index);
        if at + 1 >= body.end || word(at + 1) != "(" {
            return None;
        }
        let close = source.closing(at + 1)?;
        let mut first = at;
        while first >= body.start + 3 && word(first - 1) == ":" && word(first - 2) == ":" {
            first -= 3;
        }
        let is_statement = first > body.start && word(close + 1) == ";";
        let before = if first == body.start { "{" } else { word(first - 1) };
        let is_whole = is_statement && matches!(before, ";" | "{" | "}" | ")" | "else");
        let is_whole = is_whole || first == body.start && word(close + 1) == ";";
        let bytes = |from: usize, to: usize| source.tokens[from].start..source.tokens[to].end;
        let mut arguments = Vec::new();
        let (mut depth, mut start) = (0, at + 2);
        for index in at + 2..=close {
            match word(index) {
                "," if depth == 0 => {
                    arguments.push(bytes(start, index - 1));
                    start = index + 1;
                }
                ")" if index == close && start < close => arguments.push(bytes(start, index - 1)),
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
        }
        let early = if is_whole { early(source, first, close + 1, body) } else { None };
        let late = if is_whole { late(source, first, close + 1, body) } else { None };
        Some(Self {
            whole: bytes(first, close),
            name: source.tokens[at].clone(),
            arguments,
            statement: is_whole.then(|| bytes(first, close + 1)),
            early,
            late,
        })
    }

    /// What is woven in for a change; `None` where it cannot be.
    fn edits(&self, source: &Source<'_>, change: &Change) -> Option<Vec<Woven>> {
        let text = |range: Range<usize>| source.text[range].to_owned();
        let around =
            |part: &Range<usize>, new: &str| text(self.whole.start..part.start) + new + &text(part.end..self.whole.end);
        let expression = |text: String| Some(vec![(self.whole.clone(), Form::Expression, on_one_line(&text))]);
        match change {
            Change::Dropped => Some(vec![(self.statement.clone()?, Form::Statement, String::new())]),
            Change::Only(condition) => {
                let statement = self.statement.clone()?;
                let limited = format!("if ({condition}) {}", on_one_line(&text(statement.clone())));
                Some(vec![(statement, Form::Statement, limited)])
            }
            Change::Early | Change::Late => {
                let place = if matches!(change, Change::Early) { &self.early } else { &self.late };
                let (at, statement) = place.clone()?;
                let moved = on_one_line(&text(statement));
                let call = self.statement.clone()?;
                Some(vec![(call, Form::Statement, String::new()), (at..at, Form::Before, moved)])
            }
            Change::Behind(statement) => {
                let mut before = (*statement).to_owned();
                for (index, argument) in self.arguments.iter().enumerate() {
                    before = before.replace(&format!("{{{index}}}"), &text(argument.clone()));
                }
                let at = self.statement.clone()?.start;
                Some(vec![(at..at, Form::Before, before)])
            }
            Change::Becomes(other) => expression(around(&self.name, other)),
            Change::FirstArgument(mask) => {
                let argument = self.arguments.first()?;
                expression(around(argument, &format!("({}) & {mask}", text(argument.clone()))))
            }
            Change::LastArgument(bits) => {
                let argument = self.arguments.last()?;
                expression(around(argument, &format!("({}) ^ {bits}", text(argument.clone()))))
            }
            Change::Result(mask) => expression(format!("({} & {mask})", text(self.whole.clone()))),
        }
    }
}

/// Where the statement that ends with token `last`, and whose call begins with token `first`, would stand behind the
/// wait before it in its block, or where the block begins; with the bytes of the statement and its condition. `None`
/// where nothing but barriers and arrivals stands between.
fn early(source: &Source<'_>, first: usize, last: usize, body: &Range<usize>) -> Option<(usize, Range<usize>)> {
    const WAITS: [&str; 4] = ["barrier_wait", "barrier_wait_for_cluster", "block_barrier", "cluster_barrier_wait"];
    let word = |index: usize| source.word(index);
    let begin = with_condition(source, first, body)?;
    let mut depth = 0;
    let opens_block = |&at: &usize| {
        depth += i32::from(word(at) == "}") - i32::from(word(at) == "{");
        depth < 0
    };
    let block = (body.start..begin).rev().find(opens_block).map_or(body.start, |at| at + 1);
    let (mut statements, mut start, mut depth) = (Vec::new(), block, 0);
    for at in block..begin {
        depth += i32::from(matches!(word(at), "(" | "[" | "{")) - i32::from(matches!(word(at), ")" | "]" | "}"));
        let goes_on = matches!(word(at + 1), ";" | "," | ")" | "else");
        if depth == 0 && (word(at) == ";" || word(at) == "}" && !goes_on) {
            statements.push(start..at + 1);
            start = at + 1;
        }
    }
    let waits = |statement: &Range<usize>| statement.clone().any(|at| WAITS.contains(&word(at)));
    let covered = &statements[statements.iter().rposition(waits).map_or(0, |wait| wait + 1)..];
    let is_barrier = |statement: &Range<usize>| statement.clone().any(|at| word(at).contains("barrier"));
    let does_something = covered.iter().any(|statement| !is_barrier(statement));
    let at = source.tokens[covered.first().filter(|_| does_something)?.start].start;
    Some((at, source.tokens[begin].start..source.tokens[last].end))
}

/// Where a statement begins that begins with token `first`, or the condition right before it. `None` behind a loop.
fn with_condition(source: &Source<'_>, first: usize, body: &Range<usize>) -> Option<usize> {
    if first > body.start && source.word(first - 1) == ")" {
        return source.opening(first - 1)?.checked_sub(1).filter(|&at| source.word(at) == "if");
    }
    Some(first)
}

/// Where the statement that ends with token `last`, and whose call begins with token `first`, would stand behind the one
/// that follows it in its block; with the bytes of the statement and its condition. `None` where none follows.
fn late(source: &Source<'_>, first: usize, last: usize, body: &Range<usize>) -> Option<(usize, Range<usize>)> {
    let word = |index: usize| source.word(index);
    let begin = with_condition(source, first, body)?;
    let mut depth = 0;
    for at in last + 1..body.end {
        depth += i32::from(matches!(word(at), "(" | "[" | "{")) - i32::from(matches!(word(at), ")" | "]" | "}"));
        if depth < 0 {
            return None;
        }
        let goes_on = matches!(word(at + 1), ";" | "," | ")" | "else");
        if depth == 0 && (word(at) == ";" || word(at) == "}" && !goes_on) {
            let behind = source.tokens[at + 1].start;
            return Some((behind, source.tokens[begin].start..source.tokens[last].end));
        }
    }
    None
}

/// The condition of the loop that begins with token `at`, as it is one round earlier; and what is looped.
fn loop_a_round_short(source: &Source<'_>, at: usize) -> Option<(Woven, String)> {
    let word = |index: usize| source.word(index);
    if word(at) != "for" || word(at + 1) != "(" {
        return None;
    }
    let close = source.closing(at + 1)?;
    let ends: Vec<usize> = (at + 2..close).filter(|&index| word(index) == ";").collect();
    let [first, second] = ends[..] else { return None };
    let condition: Vec<&str> = (first + 1..second).map(word).collect();
    let step: Vec<&str> = (second + 1..close).map(word).collect();
    let (&variable, rest) = condition.split_first()?;
    let text = |from: usize, to: usize| &source.text[source.tokens[from].start..source.tokens[to].end];
    let bytes = source.tokens[first + 1].start..source.tokens[second - 1].end;
    let next = match step[..] {
        ["+", "+", counted] if counted == variable => format!("{variable} + 1"),
        [counted, "+", "=", ..] if counted == variable => format!("{variable} + ({})", text(second + 4, close - 1)),
        [counted, "*", "=", ..] if counted == variable => format!("{variable} * ({})", text(second + 4, close - 1)),
        [counted, "/", "=", ..] if counted == variable => format!("{variable} / ({})", text(second + 4, close - 1)),
        _ => return None,
    };
    let compares = matches!(rest.first(), Some(&"<") | Some(&">")) && !condition.contains(&"&");
    let shorter = format!("{next} {}", text(first + 2, second - 1));
    compares.then(|| ((bytes, Form::Expression, on_one_line(&shorter)), on_one_line(text(at, close))))
}

/// Lines keep their numbers.
fn on_one_line(text: &str) -> String {
    let without_comments = text.lines().map(|line| line.split("//").next().unwrap_or("").trim());
    without_comments.collect::<Vec<_>>().join(" ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::Faults;

    const KERNEL: &str = "\
DEVICE void f(ring& r, u32 count) {
  barrier_wait(r.full, 1);
  const u32 index = memory::shared_load(r.index);
  warp_barrier();
  if (lane_index() == 0) barrier_arrive(r.empty);
  for (u32 i = first; i < count; i += step) use(i);
  for (;;) {
    if (ballot(memory::load_acquire(r.tag) == 0) == 0) break;
  }
  warp_barrier();
  barrier_arrive(r.other);
}
";

    fn derived(remarks: &str) -> Result<(Faults, String), String> {
        let mut faults = Faults::parse(remarks)?;
        let woven = faults.weave(KERNEL, true)?;
        Ok((faults, woven))
    }

    #[test]
    fn each_synchronisation_vote_and_loop_has_its_faults() {
        let (faults, woven) = derived("").unwrap();
        let found: Vec<_> = faults.faults.iter().map(|fault| (fault.name.as_str(), fault.line)).collect();
        assert_eq!(
            found,
            [
                ("f_barrier_wait_dropped", 2),
                ("f_barrier_wait_weakened", 2),
                ("f_warp_barrier_1_dropped", 4),
                ("f_barrier_arrive_1_dropped", 5),
                ("f_barrier_arrive_1_early", 5),
                ("f_barrier_arrive_1_weakened", 5),
                ("f_loop_a_round_short", 6),
                ("f_ballot_without_a_lane", 8),
                ("f_load_acquire_weakened", 8),
                ("f_load_acquire_narrowed", 8),
                ("f_warp_barrier_2_dropped", 10),
                ("f_barrier_arrive_2_dropped", 11),
                ("f_barrier_arrive_2_early", 11),
                ("f_barrier_arrive_2_weakened", 11),
            ]
        );
        assert_eq!(woven.lines().count(), KERNEL.lines().count());
        let early = "if (MUTANT(f_barrier_arrive_1_early)) { if (lane_index() == 0) barrier_arrive(r.empty); }";
        assert!(woven.lines().nth(2).unwrap().contains(early), "{woven}");
        assert!(woven.contains("(MUTANT(f_loop_a_round_short) ? (i + (step) < count) : (i < count))"), "{woven}");
        assert!(woven.contains("(MUTANT(f_load_acquire_weakened) ? (memory::load_relaxed(r.tag)) : "), "{woven}");
        assert!(woven.contains("& 0x7fffffffu))"), "{woven}");
    }

    #[test]
    fn launches_around_have_faults_of_their_own() {
        const ENTRY: &str = "DEVICE void enter(Kernel kernel) {\n  if (!later) allow_next_launch();\n  \
                             wait_for_launches_before();\n  kernel([&] { f(); });\n}\n";
        let mut faults = Faults::default();
        let woven = faults.weave(ENTRY, true).unwrap();
        let names: Vec<_> = faults.faults.iter().map(|fault| fault.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "enter_allow_next_launch_dropped",
                "enter_allow_next_launch_late",
                "enter_wait_for_launches_before_dropped",
                "enter_wait_for_launches_before_late",
                "enter_wait_for_launches_before_by_one_thread",
            ]
        );
        let line = |number: usize| woven.lines().nth(number).unwrap();
        // With its condition, in front of what comes behind the statement that it was in front of.
        let late = "if (MUTANT(enter_allow_next_launch_late)) { if (!later) allow_next_launch(); }";
        assert!(line(3).contains(late) && line(3).ends_with("kernel([&] { f(); });"), "{woven}");
        assert!(
            line(4).starts_with("{ if (MUTANT(enter_wait_for_launches_before_late)) { wait_for_launches_before(); } }"),
            "{woven}"
        );
        let alone = "if (MUTANT(enter_wait_for_launches_before_by_one_thread)) { if (thread_index() == 0) wait_for";
        assert!(line(2).contains(alone), "{woven}");
        // The last statement of a block has none behind it.
        assert!(
            Faults::default()
                .weave("void f() { g(); wait_for_launches_before(); }", true)
                .unwrap()
                .matches("_late")
                .count()
                == 0
        );
    }

    #[test]
    fn a_file_says_when_a_derived_fault_can_show_and_which_is_none() {
        let remarks = "[[derived]]\nwhen = 'need=misaligned'\n[[derived]]\nin = 'f'\nwhen = 'need=windows'\n\
                       [[derived]]\nname = 'f_warp_barrier_2_dropped'\nequivalent = 'nothing is read behind it'\n";
        let (faults, _) = derived(remarks).unwrap();
        let fault = |name| faults.faults.iter().find(|fault| fault.name == name).unwrap();
        assert_eq!(fault("f_barrier_wait_dropped").when, "kind=barrier need=windows");
        let none = fault("f_warp_barrier_2_dropped");
        assert_eq!(none.when, "kind=harmless need=windows");
        assert!(none.text.ends_with(": nothing is read behind it"), "{}", none.text);
        for (remark, why) in [
            ("name = 'f_gone'\nwhen = ''", "speaks of f_gone"),
            ("in = 'g'\nwhen = ''", "speaks of g"),
            ("name = 'f_ballot_without_a_lane'", "neither"),
            ("equivalent = 'all of it'", "which fault"),
        ] {
            let error = derived(&format!("[[derived]]\n{remark}\n")).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn what_is_there_by_hand_is_not_there_twice() {
        let by_hand = "[[fault]]\nname = 'a'\nwhen = 'kind=barrier'\ntext = 't'\n[[fault.edit]]\nin = 'f'\n\
                       statement = 'barrier_wait(r.full, 1);'\nbecomes = ''\n";
        let (faults, _) = derived(by_hand).unwrap();
        assert!(faults.faults.iter().all(|fault| fault.name != "f_barrier_wait_dropped"));
    }
}
