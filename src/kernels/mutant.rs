//! The faults that the kernels can be given on purpose. They are read from the kernels themselves: a hook
//! `MUTANT(name, "when", "text")` in `cuda/` is all there is to a mutant (`cuda/mutants.cuh`).

pub use crate::element::OPERATORS_WITH_MUTANTS;
use crate::kernels::sources::embedded;
use crate::names::named;
use crate::strategy::{Blocks, Composition, Descriptor, Mode, Pattern, Strategy, StrategyRow};
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// The number of a mutant's name, as `cuda/mutants.cuh` computes it: FNV-1a, 32 bits.
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
        /// A launch that ends in the middle, and another behind it.
        Abort = "abort",
        /// Two launches at one time.
        Overlap = "overlap",
    }
}

/// Where a mutant can show at all. An empty list is any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct When {
    /// Strategies whose kernels hold the hook.
    pub strategies: Vec<Strategy>,
    /// Descriptor layouts that reach it.
    pub layouts: Vec<Descriptor>,
    /// Scan patterns that reach it.
    pub patterns: Vec<Pattern>,
    /// Compositions that reach it.
    pub compositions: Vec<Composition>,
    /// Modes that reach it.
    pub modes: Vec<Mode>,
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
    /// Where it can show.
    pub when: When,
    /// What it is, in a few words.
    pub text: String,
    /// The file of its first hook, below the repository's root.
    pub file: String,
    /// The line of that hook, from 1.
    pub line: u32,
}

/// A hook that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MutantError {
    /// Not `MUTANT(name, "when", "text")`.
    #[error("{file}:{line}: a hook is MUTANT(name, \"when\", \"text\") with plain strings; this one is not")]
    Malformed { file: String, line: u32 },
    /// A word of `when` that is not known.
    #[error("{file}:{line}: '{word}' is not known in a mutant's \"when\"; cuda/mutants.cuh lists what is")]
    UnknownWord { file: String, line: u32, word: String },
    /// A first hook without a kind.
    #[error("{file}:{line}: the mutant '{name}' says no kind: give kind=… at one of its hooks, and \"\" at the others")]
    NoKind { file: String, line: u32, name: String },
    /// Two descriptions of one name.
    #[error("{file}:{line}: the mutant '{name}' is described twice: leave \"\" and \"\" at its other hooks")]
    Twice { file: String, line: u32, name: String },
    /// A name that no hook has.
    #[error("there is no mutant '{name}'; `lookback stress --list-mutants` lists them")]
    Unknown { name: String },
}

impl Mutant {
    /// Every mutant, in the order of files and lines, then those of the host.
    ///
    /// # Errors
    /// When a hook in the sources cannot be read.
    pub fn all() -> Result<&'static [Self], MutantError> {
        static ALL: OnceLock<Result<Vec<Mutant>, MutantError>> = OnceLock::new();
        match ALL.get_or_init(|| read(embedded())) {
            Ok(mutants) => Ok(mutants),
            Err(error) => Err(error.clone()),
        }
    }

    /// The mutant of a name.
    ///
    /// # Errors
    /// When there is none, or the hooks cannot be read.
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

fn read(files: &[(&str, &str)]) -> Result<Vec<Mutant>, MutantError> {
    let mut mutants: Vec<Mutant> = Vec::new();
    let mut named: Vec<(String, String, u32)> = Vec::new();
    for (file, text) in files.iter().filter(|(file, _)| *file != "mutants.cuh") {
        let file = format!("cuda/{file}");
        for (start, _) in text.match_indices("MUTANT(") {
            let line = 1 + text[..start].matches('\n').count() as u32;
            // Comments may speak of hooks.
            if text[..start].rsplit('\n').next().is_some_and(|before| before.contains("//")) {
                continue;
            }
            let malformed = || MutantError::Malformed { file: file.clone(), line };
            let hook = Hook::parse(&text[start + "MUTANT(".len()..]).ok_or_else(malformed)?;
            if hook.when.is_empty() {
                named.push((hook.name, file.clone(), line));
                continue;
            }
            if mutants.iter().any(|mutant| mutant.name == hook.name) {
                return Err(MutantError::Twice { file, line, name: hook.name });
            }
            mutants.push(describe(hook, &file, line)?);
        }
    }
    // A second hook of a mutant that nobody describes.
    if let Some((name, file, line)) = named.into_iter().find(|(name, ..)| !mutants.iter().any(|m| m.name == *name)) {
        return Err(MutantError::NoKind { file, line, name });
    }
    for (name, when, text) in OF_HOST {
        let hook = Hook { name: name.to_owned(), when: when.to_owned(), text: text.to_owned() };
        // They have no hook: the file stands for both.
        mutants.push(describe(hook, file!(), 1)?);
    }
    Ok(mutants)
}

struct Hook {
    name: String,
    when: String,
    text: String,
}

impl Hook {
    /// What stands behind `MUTANT(`.
    fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once(',')?;
        let name = name.trim();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return None;
        }
        let (when, rest) = literal(rest)?;
        let (text, rest) = literal(rest.trim_start().strip_prefix(',')?)?;
        rest.trim_start().starts_with(')').then(|| Self {
            name: name.to_owned(),
            when: when.to_owned(),
            text: text.to_owned(),
        })
    }
}

/// A string literal without escapes, and what follows it.
fn literal(text: &str) -> Option<(&str, &str)> {
    let (literal, rest) = text.trim_start().strip_prefix('"')?.split_once('"')?;
    (!literal.contains('\\') && !literal.contains('\n')).then_some((literal, rest))
}

fn describe(hook: Hook, file: &str, line: u32) -> Result<Mutant, MutantError> {
    let unknown = |word: &str| MutantError::UnknownWord { file: file.to_owned(), line, word: word.to_owned() };
    let mut kind = None;
    let mut when = When::default();
    for word in hook.when.split_whitespace() {
        let (key, values) = word.split_once('=').ok_or_else(|| unknown(word))?;
        match key {
            "kind" => kind = values.parse().map(Some).map_err(|_| unknown(word))?,
            "strategy" => when.strategies = list(values).ok_or_else(|| unknown(word))?,
            "layout" => when.layouts = list(values).ok_or_else(|| unknown(word))?,
            "pattern" => when.patterns = list(values).ok_or_else(|| unknown(word))?,
            "composition" => when.compositions = list(values).ok_or_else(|| unknown(word))?,
            "mode" => when.modes = list(values).ok_or_else(|| unknown(word))?,
            "need" => when.needs = list(values).ok_or_else(|| unknown(word))?,
            _ => return Err(unknown(word)),
        }
    }
    // A layout or an epoch is only there where each tile has a block and a descriptor.
    if when.strategies.is_empty()
        && (!when.layouts.is_empty() || matches!(kind, Some(Kind::Protocol | Kind::Ordering | Kind::Harmless)))
    {
        let has_protocol = |row: &StrategyRow| row.shape.has_descriptors && row.shape.blocks == Blocks::PerTile;
        when.strategies = Strategy::ALL.iter().copied().filter(|strategy| has_protocol(strategy.row())).collect();
    }
    let kind = kind.ok_or_else(|| MutantError::NoKind { file: file.to_owned(), line, name: hook.name.clone() })?;
    Ok(Mutant { name: hook.name, kind, when, text: hook.text, file: file.to_owned(), line })
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
    fn hooks_that_cannot_be_read_are_named() {
        let fails = |text: &str| read(&[("a.cuh", text)]).expect_err(text);
        assert!(matches!(fails("\nif (MUTANT(a, b, c))"), MutantError::Malformed { line: 2, .. }));
        assert!(matches!(fails("MUTANT(a, \"kind=ordering shape=round\", \"t\")"), MutantError::UnknownWord { .. }));
        assert!(matches!(fails("MUTANT(a, \"kind=ordering need=luck\", \"t\")"), MutantError::UnknownWord { .. }));
        assert!(matches!(fails("MUTANT(a, \"strategy=lookback\", \"t\")"), MutantError::NoKind { .. }));
        assert!(matches!(fails("MUTANT(a, \"\", \"\")"), MutantError::NoKind { .. }));
        let twice = "MUTANT(a, \"kind=barrier\", \"t\") MUTANT(a, \"kind=barrier\", \"t\")";
        assert!(matches!(fails(twice), MutantError::Twice { .. }));
        let read = read(&[(
            "b/c.cuh",
            "MUTANT(a,\n  \"kind=barrier need=wrap,windows strategy=lookback\",\n \"t\") MUTANT(a, \"\", \"\")",
        )]);
        let mutant = &read.expect("well formed")[0];
        assert_eq!((mutant.name.as_str(), mutant.kind, mutant.text.as_str()), ("a", Kind::Barrier, "t"));
        assert_eq!((mutant.file.as_str(), mutant.line), ("cuda/b/c.cuh", 1));
        assert_eq!(mutant.when.needs, [Need::Wrap, Need::Windows]);
    }
}
