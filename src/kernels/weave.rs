//! Weaves faults and probes into the kernel sources, at build time. `build.rs` compiles this file, the crate only its
//! tests: what comes out is embedded.
//!
//! `cuda/faults/scan/lookback.toml` says what can be put into `cuda/scan/lookback.cuh`, and where: a text that stands
//! exactly once in a function, by its tokens, so that neither layout nor comments matter. A text that does not match
//! any more, or matches twice, fails the build. docs/stress.md says how a fault is written.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;
use toml::{Table, Value};

#[path = "rules.rs"]
mod rules;

/// Where something is woven into a kernel, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edit {
    /// The function, with its struct if it has one: `split::publish`.
    function: String,
    /// What stands before the anchor, where the anchor alone stands more than once.
    behind: String,
    /// What is looked for.
    anchor: String,
    form: Form,
    /// What stands in its place, or before it.
    text: String,
}

/// How an anchor and what is woven stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One statement or more stand in place of one or more.
    Statement,
    /// An expression stands in place of another of its type.
    Expression,
    /// Statements stand before it, too.
    Before,
}

/// A fault on purpose, as its file says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its name, unique among all.
    pub name: String,
    /// Its kind and when it can show, for `src/kernels/mutant.rs`.
    pub when: String,
    /// What it is, in a few words.
    pub text: String,
    /// The line of its first edit in the kernel, from 1.
    pub line: usize,
    /// The rule that it follows from; `None` for one that its file describes.
    pub rule: Option<&'static str>,
    edits: Vec<Edit>,
}

/// What a file says of faults that follow from rules.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Remark {
    /// One of them by its name.
    name: Option<String>,
    /// All in this function; without name and function, all of the file.
    function: Option<String>,
    /// When they can show, beside what the rule says.
    when: Option<String>,
    /// Why nothing goes wrong with it.
    equivalent: Option<String>,
}

/// What can be woven into one kernel file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    /// When all of them can show; what is said of one counts more.
    when: String,
    /// In the order of the file.
    pub faults: Vec<Fault>,
    /// What is woven in with every fault: delays and counters.
    probes: Vec<Edit>,
    /// Of the faults by rule; the last that fits says when.
    remarks: Vec<Remark>,
}

impl Faults {
    /// Reads such a file.
    ///
    /// # Errors
    /// When it is not laid out as docs/stress.md says.
    pub fn parse(text: &str) -> Result<Self, String> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        check_keys(&table, &["when", "fault", "probe", "derived"])?;
        let of_file = if table.contains_key("when") { word(&table, "when")? } else { String::new() };
        let mut names = BTreeSet::new();
        let mut faults = Vec::new();
        for table in tables(&table, "fault")? {
            check_keys(table, &["name", "when", "text", "edit"])?;
            let name = word(table, "name")?;
            let is_name = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if name.is_empty() || !is_name(&name) {
                return Err(format!("'{name}' is no name of a fault: lower-case letters, digits and _"));
            }
            if !names.insert(name.clone()) {
                return Err(format!("there are two faults '{name}'"));
            }
            let in_fault = |error: String| format!("fault '{name}': {error}");
            let edits: Result<Vec<_>, _> = tables(table, "edit")?.into_iter().map(Edit::parse).collect();
            let edits = edits.map_err(in_fault)?;
            if edits.is_empty() {
                return Err(in_fault("it changes nothing; give it an [[fault.edit]]".to_owned()));
            }
            let (when, text) = (word(table, "when").map_err(in_fault)?, word(table, "text").map_err(in_fault)?);
            let when = format!("{of_file} {when}").trim().to_owned();
            faults.push(Fault { when, text, line: 0, rule: None, edits, name });
        }
        let probes: Result<Vec<_>, _> = tables(&table, "probe")?.into_iter().map(Edit::parse).collect();
        let probes = probes.map_err(|error| format!("a probe: {error}"))?;
        let remarks: Result<Vec<_>, _> = tables(&table, "derived")?.into_iter().map(Remark::parse).collect();
        let remarks = remarks.map_err(|error| format!("a remark on derived faults: {error}"))?;
        Ok(Self { when: of_file, faults, probes, remarks })
    }

    /// The kernel file with all of it woven in, where `derives` with every fault that follows from a rule too, on the lines
    /// on which it stood: `MUTANT(name)` chooses a fault. The faults learn their lines, and those by rule are added.
    ///
    /// # Errors
    /// When an edit does not match exactly once, or two edits cut across each other, or a remark speaks of nothing.
    pub fn weave(&mut self, kernel: &str, derives: bool) -> Result<String, String> {
        let source = Source::new(kernel);
        let mut places = Vec::new();
        for probe in &self.probes {
            let range = source.find(probe).map_err(|error| format!("a probe: {error}"))?;
            places.push(Place { range, form: probe.form, text: probe.text.clone(), fault: None });
        }
        for fault in &mut self.faults {
            for (index, edit) in fault.edits.iter().enumerate() {
                let range = source.find(edit).map_err(|error| format!("fault '{}': {error}", fault.name))?;
                if index == 0 {
                    fault.line = source.line(range.start);
                }
                places.push(Place { range, form: edit.form, text: edit.text.clone(), fault: Some(fault.name.clone()) });
            }
        }
        self.add_derived(if derives { rules::derive(&source) } else { Vec::new() }, &source, &mut places)?;
        // The outermost first; what stands before the rest of its place first.
        places.sort_by_key(|place| (place.range.start, place.form != Form::Before, usize::MAX - place.range.end));
        let mut woven = String::new();
        let end = source.append(0..kernel.len(), &places, &mut woven)?;
        debug_assert_eq!(end, places.len());
        Ok(woven)
    }

    /// Adds what follows from the rules, less what the file has by hand, and what it says of it.
    fn add_derived(
        &mut self,
        derived: Vec<rules::Derived>,
        source: &Source<'_>,
        places: &mut Vec<Place>,
    ) -> Result<(), String> {
        let mut is_used = vec![false; self.remarks.len()];
        for rules::Derived { name, function, kind, rule, text, edits } in derived {
            let is_by_hand = |(range, form, text): &rules::Woven| {
                let same = |place: &&Place| place.range == *range && place.form == *form && place.text == *text;
                places.iter().find(same).and_then(|place| place.fault.as_ref())
            };
            let by_hand: Vec<_> = edits.iter().map(is_by_hand).collect();
            if by_hand[0].is_some() && by_hand.iter().all(|fault| *fault == by_hand[0]) {
                continue;
            }
            if self.faults.iter().any(|fault| fault.name == name) {
                return Err(format!("there are two faults '{name}', the second by a rule"));
            }
            let (mut when, mut text, mut kind) = (String::new(), text, kind);
            for (remark, is_used) in self.remarks.iter().zip(&mut is_used) {
                let fits = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|wanted| wanted == is);
                if !fits(&remark.name, &name) || !fits(&remark.function, &function) {
                    continue;
                }
                *is_used = true;
                if let Some(more) = &remark.when {
                    when.clone_from(more);
                }
                if let Some(reason) = &remark.equivalent {
                    kind = "harmless";
                    text = format!("{text}: {reason}");
                }
            }
            let line = source.line(edits[0].0.start);
            places.extend(edits.into_iter().map(|(range, form, text)| Place {
                range,
                form,
                text,
                fault: Some(name.clone()),
            }));
            let when = format!("kind={kind} {} {when}", self.when);
            let when = when.split_whitespace().collect::<Vec<_>>().join(" ");
            self.faults.push(Fault { name, when, text, line, rule: Some(rule), edits: Vec::new() });
        }
        match self.remarks.iter().zip(&is_used).find(|(_, is_used)| !**is_used) {
            Some((Remark { name, function, .. }, _)) => {
                let of = name.as_deref().or(function.as_deref()).unwrap_or("the file");
                Err(format!("a remark on derived faults speaks of {of}, and no rule gives one there"))
            }
            None => Ok(()),
        }
    }
}

impl Remark {
    fn parse(table: &Table) -> Result<Self, String> {
        check_keys(table, &["name", "in", "when", "equivalent"])?;
        let word = |key| if table.contains_key(key) { word(table, key).map(Some) } else { Ok(None) };
        let remark =
            Self { name: word("name")?, function: word("in")?, when: word("when")?, equivalent: word("equivalent")? };
        if remark.when.is_none() && remark.equivalent.is_none() {
            return Err("it has neither 'when' nor 'equivalent'".to_owned());
        }
        if remark.equivalent.is_some() && remark.name.is_none() {
            return Err("say by 'name' which fault is equivalent".to_owned());
        }
        Ok(remark)
    }
}

impl Edit {
    fn parse(table: &Table) -> Result<Self, String> {
        check_keys(table, &["in", "behind", "statement", "expression", "before", "becomes", "insert"])?;
        let forms = [
            ("statement", Form::Statement, "becomes"),
            ("expression", Form::Expression, "becomes"),
            ("before", Form::Before, "insert"),
        ];
        let mut given = forms.into_iter().filter(|(key, ..)| table.contains_key(*key));
        let (Some((key, form, by)), None) = (given.next(), given.next()) else {
            return Err("an edit has one of statement, expression and before".to_owned());
        };
        let behind = if table.contains_key("behind") { word(table, "behind")? } else { String::new() };
        // Lines keep their numbers: what is woven in stands on one.
        let text = word(table, by)?.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned();
        Ok(Self { function: word(table, "in")?, behind, anchor: word(table, key)?, form, text })
    }
}

fn check_keys(table: &Table, known: &[&str]) -> Result<(), String> {
    match table.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!("'{key}' is not known here; {} are", known.join(", "))),
        None => Ok(()),
    }
}

fn word(table: &Table, key: &str) -> Result<String, String> {
    match table.get(key) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("'{key}' is no text")),
        None => Err(format!("'{key}' is missing")),
    }
}

fn tables<'a>(table: &'a Table, key: &str) -> Result<Vec<&'a Table>, String> {
    let rows = match table.get(key) {
        None => return Ok(Vec::new()),
        Some(Value::Array(rows)) => rows,
        Some(_) => return Err(format!("write [[{key}]]")),
    };
    rows.iter().map(|row| row.as_table().ok_or_else(|| format!("write [[{key}]]"))).collect()
}

/// An edit where it belongs.
struct Place {
    /// The bytes of the anchor.
    range: Range<usize>,
    form: Form,
    /// What stands in its place, or before it.
    text: String,
    /// `None` is a probe.
    fault: Option<String>,
}

/// A kernel file, its tokens and its functions.
struct Source<'a> {
    text: &'a str,
    tokens: Vec<Range<usize>>,
    /// Name and body, as indices of tokens.
    functions: Vec<(String, Range<usize>)>,
}

impl<'a> Source<'a> {
    fn new(text: &'a str) -> Self {
        let tokens = tokens(text);
        let functions = functions(text, &tokens);
        Self { text, tokens, functions }
    }

    fn line(&self, at: usize) -> usize {
        1 + self.text[..at].matches('\n').count()
    }

    fn word(&self, token: usize) -> &'a str {
        self.tokens.get(token).map_or("", |range| &self.text[range.clone()])
    }

    /// The token that closes the parenthesis at `open`.
    fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0;
        (open..self.tokens.len()).find(|&at| {
            depth += i32::from(self.word(at) == "(") - i32::from(self.word(at) == ")");
            depth == 0
        })
    }

    /// The token that opens the parenthesis at `close`.
    fn opening(&self, close: usize) -> Option<usize> {
        let mut depth = 0;
        (0..=close).rev().find(|&at| {
            depth += i32::from(self.word(at) == ")") - i32::from(self.word(at) == "(");
            depth == 0
        })
    }

    /// The bytes of an edit's anchor.
    fn find(&self, edit: &Edit) -> Result<Range<usize>, String> {
        let text_of = |text: &'a str| move |range: &Range<usize>| &text[range.clone()];
        let words = |text| tokens(text).into_iter().map(|range| text[range].to_owned()).collect::<Vec<_>>();
        let (behind, anchor) = (words(&edit.behind), words(&edit.anchor));
        if anchor.is_empty() {
            return Err("its anchor is empty".to_owned());
        }
        let sought = [behind.as_slice(), &anchor].concat();
        let mut found = Vec::new();
        let bodies = self.functions.iter().filter(|(name, _)| *name == edit.function).map(|(_, body)| body);
        let mut is_known = false;
        for body in bodies {
            is_known = true;
            let here: Vec<&str> = self.tokens[body.clone()].iter().map(text_of(self.text)).collect();
            let starts = here.windows(sought.len()).enumerate().filter(|(_, window)| *window == sought);
            found.extend(starts.map(|(start, _)| body.start + start));
        }
        let (function, anchor_text) = (&edit.function, &edit.anchor);
        let start = match found[..] {
            [start] => start,
            [] if !is_known => return Err(format!("there is no function {function}")),
            [] => return Err(format!("`{anchor_text}` does not stand in {function}")),
            _ => {
                let lines: Vec<_> = found.iter().map(|&at| self.line(self.tokens[at].start).to_string()).collect();
                let lines = lines.join(", ");
                return Err(format!(
                    "`{anchor_text}` stands in {function} on the lines {lines}; say by `behind` which is meant"
                ));
            }
        };
        let first = start + behind.len();
        let range = self.tokens[first].start..self.tokens[start + sought.len() - 1].end;
        let before = first.checked_sub(1).map_or("", |before| &self.text[self.tokens[before].clone()]);
        // Behind a condition stands one statement: another before it would take its place.
        let may_stand_alone = edit.form == Form::Statement && matches!(before, ")" | "else");
        let begins_statement = may_stand_alone || matches!(before, ";" | "{" | "}");
        let ends_statement = self.text[range.clone()].ends_with([';', '}']);
        match edit.form {
            Form::Statement | Form::Before if !begins_statement => {
                Err(format!("`{anchor_text}` in {function} does not begin a statement"))
            }
            Form::Statement if !ends_statement => Err(format!("`{anchor_text}` in {function} ends no statement")),
            _ => Ok(range),
        }
    }

    /// Appends these bytes with the places in them, of which `places` begins with the first, and says how many there are.
    fn append(&self, range: Range<usize>, places: &[Place], woven: &mut String) -> Result<usize, String> {
        let (mut at, mut next) = (range.start, 0);
        while let Some(place) = places.get(next).filter(|place| place.range.start < range.end) {
            if place.range.end > range.end {
                return Err(format!("two edits cut across each other at line {}", self.line(place.range.start)));
            }
            woven.push_str(&self.text[at..place.range.start]);
            at = place.range.start;
            let Place { form, text, .. } = place;
            if *form == Form::Before {
                match &place.fault {
                    Some(fault) => write!(woven, "{{ if (MUTANT({fault})) {{ {text} }} }} "),
                    None => write!(woven, "{text} "),
                }
                .expect("writing to a String");
                next += 1;
                continue;
            }
            // All that have the same place make one choice.
            let same = places[next..].iter().take_while(|other| other.range == place.range && other.form == *form);
            let count = same.clone().count();
            for Place { fault, text, .. } in same {
                let fault = fault.as_ref().ok_or("a probe stands before something, and in place of nothing")?;
                match form {
                    Form::Expression => write!(woven, "(MUTANT({fault}) ? ({text}) : "),
                    _ => write!(woven, "{{ if (MUTANT({fault})) {{ {text} }} else "),
                }
                .expect("writing to a String");
            }
            woven.push(if *form == Form::Expression { '(' } else { '{' });
            let inside = self.append(place.range.clone(), &places[next + count..], woven)?;
            let close = if *form == Form::Expression { ")" } else { "}" };
            woven.push_str(&close.repeat(count + 1));
            at = place.range.end;
            next += count + inside;
        }
        woven.push_str(&self.text[at..range.end]);
        Ok(next)
    }
}

/// The tokens of C++: words and numbers, literals, and every other character for itself. Comments and directives are none.
fn tokens(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let end_of = |from: usize, end: &str| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    let mut tokens = Vec::new();
    let mut at = 0;
    let mut begins_line = true;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'\n' => begins_line = true,
            byte if byte.is_ascii_whitespace() => {}
            b'#' if begins_line => {
                // To the first line's end without a backslash before it.
                at = end_of(at, "\n");
                while text[..at].ends_with("\\\n") {
                    at = end_of(at, "\n");
                }
                continue;
            }
            b'/' if text[at..].starts_with("//") => {
                at = end_of(at, "\n") - 1;
                continue;
            }
            b'/' if text[at..].starts_with("/*") => {
                at = end_of(at, "*/");
                continue;
            }
            quote @ (b'"' | b'\'') => {
                begins_line = false;
                at += 1;
                while at < bytes.len() && bytes[at] != quote {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at = (at + 1).min(bytes.len());
                tokens.push(start..at);
                continue;
            }
            _ => {
                begins_line = false;
                let is_word = |&byte: &u8| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
                at += bytes[at..].iter().take_while(|byte| is_word(byte)).count().max(1);
                tokens.push(start..at);
                continue;
            }
        }
        at += 1;
    }
    tokens
}

/// The functions by name, and where their bodies are; those of a struct as `struct::function`.
fn functions(text: &str, tokens: &[Range<usize>]) -> Vec<(String, Range<usize>)> {
    enum Scope {
        /// A namespace, an array's values, …: what is in it is named as if it were outside.
        Other,
        /// The value of a parameter that is left out.
        Value,
        Struct(String),
        Function(String, usize),
        Block,
    }
    let word = |index: usize| &text[tokens[index].clone()];
    let mut functions = Vec::new();
    let mut open: Vec<Scope> = Vec::new();
    let mut header = 0;
    for index in 0..tokens.len() {
        match word(index) {
            "{" if is_in_parentheses((header..index).map(word)) => open.push(Scope::Value),
            "{" => {
                let words: Vec<&str> = without_template((header..index).map(word).collect());
                let is_inside = matches!(open.last(), Some(Scope::Function(..) | Scope::Block));
                let called = words.iter().position(|&word| word == "(");
                let of_struct = words.iter().position(|word| ["struct", "class", "union"].contains(word));
                open.push(if is_inside {
                    Scope::Block
                } else if let Some(at) = of_struct.filter(|&at| called.is_none_or(|called| at < called)) {
                    let name = words[at + 1..].iter().take_while(|&&word| word != ":" && word != "<").last();
                    Scope::Struct((*name.unwrap_or(&"")).to_owned())
                } else if let Some(name) = called.and_then(|at| at.checked_sub(1)).map(|at| words[at]) {
                    let of =
                        open.iter().filter_map(|scope| if let Scope::Struct(name) = scope { Some(name) } else { None });
                    let path: Vec<&str> = of.map(String::as_str).chain([name]).collect();
                    Scope::Function(path.join("::"), index + 1)
                } else {
                    Scope::Other
                });
                header = index + 1;
            }
            "}" => {
                match open.pop() {
                    Some(Scope::Value) => continue,
                    Some(Scope::Function(name, start)) => functions.push((name, start..index)),
                    _ => {}
                }
                header = index + 1;
            }
            ";" => header = index + 1,
            _ => {}
        }
    }
    functions
}

/// Whether a parenthesis is still open behind these words.
fn is_in_parentheses<'a>(words: impl Iterator<Item = &'a str>) -> bool {
    words.map(|word| i32::from(word == "(") - i32::from(word == ")")).sum::<i32>() > 0
}

/// The words behind `template <…>`.
fn without_template(words: Vec<&str>) -> Vec<&str> {
    let mut rest = &words[..];
    while rest.first() == Some(&"template") {
        let mut depth = 0;
        let end = rest.iter().position(|&word| {
            depth += i32::from(word == "<") - i32::from(word == ">");
            word == ">" && depth == 0
        });
        rest = end.map_or(&[][..], |end| &rest[end + 1..]);
    }
    rest.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "\
#pragma once
namespace a {
template <class T, class U = b<T>>
struct alignas(16) pair : base<T> {
  // f(x) { } in a comment
  DEVICE explicit pair(T x) : x_(x) {}
  DEVICE T f(u32 i, site at = {}) const {
    if (i > 0) {
      barrier();  // twice
      use(i,
          \"text } {\");
    }
    barrier();
    return i + 1;
  }
};
DEVICE void f() { g([&](auto x) { h(x); }); }
}
";

    fn woven(faults: &str) -> Result<String, String> {
        Faults::parse(faults)?.weave(KERNEL, false)
    }

    fn fault(name: &str, edit: &str) -> String {
        format!("[[fault]]\nname = '{name}'\nwhen = 'kind=barrier'\ntext = 't'\n[[fault.edit]]\n{edit}\n")
    }

    #[test]
    fn functions_are_found_by_name() {
        let source = Source::new(KERNEL);
        let names: Vec<_> = source.functions.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["pair::pair", "pair::f", "f"]);
    }

    #[test]
    fn what_is_woven_keeps_every_line_where_it_was() {
        let text = [
            fault("a", "in = 'pair::f'\nbehind = '}'\nstatement = 'barrier();'\nbecomes = ''"),
            fault("b", "in = 'pair::f'\nexpression = 'i+1'\nbecomes = '''i -\n 1'''"),
            fault("c", "in = 'pair::f'\nexpression = 'i + 1'\nbecomes = '2'"),
            fault("d", "in = 'f'\nbefore = 'h(x);'\ninsert = 'k();'"),
            fault("e", "in = 'pair::f'\nstatement = 'return i + 1;'\nbecomes = 'return 7;'"),
            "[[probe]]\nin = 'pair::f'\nbefore = 'use('\ninsert = 'count();'\n".to_owned(),
        ];
        let mut faults = Faults::parse(&text.concat()).unwrap();
        let woven = faults.weave(KERNEL, false).unwrap();
        let expected = KERNEL
            .replace("    barrier();\n", "    { if (MUTANT(a)) {  } else {barrier();}}\n")
            .replace(
                "return i + 1;",
                "{ if (MUTANT(e)) { return 7; } else {return (MUTANT(b) ? (i - 1) : (MUTANT(c) ? (2) : (i + 1)));}}",
            )
            .replace("h(x);", "{ if (MUTANT(d)) { k(); } } h(x);")
            .replace("use(", "count(); use(");
        assert_eq!(woven, expected);
        assert_eq!(faults.faults.iter().map(|fault| fault.line).collect::<Vec<_>>(), [13, 14, 14, 17, 14]);
    }

    #[test]
    fn what_a_file_says_at_its_head_holds_for_all_its_faults_and_less_than_what_one_says() {
        let by_hand = fault("a", "in = 'f'\nbefore = 'h(x);'\ninsert = 'k();'");
        let text = format!("when = 'problem=rows need=wrap'\n{by_hand}[[derived]]\nwhen = 'need=windows'\n");
        let mut faults = Faults::parse(&text).unwrap();
        let kernel = KERNEL.replace("barrier();", "block_barrier();");
        faults.weave(&kernel, true).unwrap();
        let whens: Vec<_> = faults.faults.iter().map(|fault| fault.when.as_str()).collect();
        // The last of a key is the one that is read.
        let by_rule = "kind=barrier problem=rows need=wrap need=windows";
        assert_eq!(whens, ["problem=rows need=wrap kind=barrier", by_rule, by_rule]);
        assert!(Faults::parse("when = 1\n").unwrap_err().contains("'when' is no text"));
    }

    #[test]
    fn an_anchor_that_does_not_match_exactly_once_is_named() {
        let fails = |edit: &str| woven(&fault("a", edit)).unwrap_err();
        assert!(fails("in = 'f'\nexpression = 'i'\nbecomes = ''").contains("fault 'a': `i` does not stand in f"));
        assert!(fails("in = 'pair::g'\nexpression = 'i'\nbecomes = ''").contains("no function pair::g"));
        assert!(fails("in = 'pair::f'\nstatement = 'barrier();'\nbecomes = ''").contains("lines 9, 13"));
        assert!(fails("in = 'pair::f'\nstatement = 'i + 1;'\nbecomes = ''").contains("begin"));
        assert!(fails("in = 'pair::f'\nstatement = 'return i'\nbecomes = ''").contains("ends no"));
        let cut = fault("a", "in = 'pair::f'\nexpression = 'return i'\nbecomes = '1'")
            + &fault("b", "in = 'pair::f'\nexpression = 'i + 1'\nbecomes = '1'");
        assert!(woven(&cut).unwrap_err().contains("cut across each other at line 14"));
    }

    #[test]
    fn a_file_that_is_laid_out_otherwise_is_refused() {
        let edit = "in = 'f'\nbefore = 'h(x);'\ninsert = 'k();'";
        for (text, why) in [
            ("[[fautl]]\n".to_owned(), "'fautl' is not known"),
            ("fault = 1\n".to_owned(), "write [[fault]]"),
            ("[[fault]]\nname = 'a'\nwhen = ''\ntext = ''\n".to_owned(), "changes nothing"),
            (fault("A b", edit), "no name"),
            (fault("a", edit) + &fault("a", edit), "two faults 'a'"),
            (fault("a", "in = 'f'\nbecomes = 'k();'"), "has one of"),
            (fault("a", "in = 'f'\nbefore = 'h(x);'"), "'insert' is missing"),
            (fault("a", &format!("{edit}\nwhere = 'here'")), "'where' is not known"),
            (fault("a", "in = 1\nbefore = 'h(x);'\ninsert = ''"), "'in' is no text"),
        ] {
            let error = Faults::parse(&text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
