//! The mutants, read from the hooks in the embedded sources (`cuda/mutants.cuh` says how a hook is written).

use crate::cuda::sources;
use crate::strategy::{Composition, Descriptor, Mode, Pattern, Strategy};
use std::str::FromStr;

/// A fault on purpose, and where it can show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// Its name.
    pub name: String,
    /// `ordering`, `barrier`, `protocol`, `algorithm` or `harmless`.
    pub kind: String,
    /// What it is.
    pub text: String,
    /// The strategies in which it can show; all if empty, and likewise below.
    pub strategies: Vec<Strategy>,
    /// Descriptor layouts.
    pub layouts: Vec<Descriptor>,
    /// Patterns.
    pub patterns: Vec<Pattern>,
    /// Compositions.
    pub compositions: Vec<Composition>,
    /// Modes.
    pub modes: Vec<Mode>,
    /// What more it takes.
    pub needs: Vec<String>,
}

/// Faults of the host: what a program does with the kernels, not what they do.
const HOST_FAULTS: [(&str, &str); 2] = [
    (ONE_WORKSPACE, "launches on two streams share one workspace"),
    (RELAUNCH_AFTER_ABORT, "the next launch takes over the workspace of one that was killed in its middle"),
];
/// The host fault that lets streams share a workspace.
pub const ONE_WORKSPACE: &str = "one_workspace_on_two_streams";
/// The host fault that launches after a launch that was killed.
pub const RELAUNCH_AFTER_ABORT: &str = "relaunch_after_abort";

impl Hook {
    /// Every mutant of the kernels, then the two of the host.
    pub fn all() -> Vec<Self> {
        let mut hooks: Vec<Self> = Vec::new();
        for (file, text) in sources::embedded() {
            if *file == "mutants.cuh" {
                continue;
            }
            for hook in parse(text) {
                if hooks.iter().all(|known| known.name != hook.name) {
                    hooks.push(hook);
                }
            }
        }
        hooks.sort_by(|left, right| (&left.kind, &left.name).cmp(&(&right.kind, &right.name)));
        for (name, text) in HOST_FAULTS {
            hooks.push(Self::new(name, "kind=host strategy=lookback,chained need=relaunch", text));
        }
        hooks
    }

    /// The mutant of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|hook| hook.name == name)
    }

    fn new(name: &str, when: &str, text: &str) -> Self {
        fn choices<T: FromStr>(words: &[&str]) -> Vec<T> {
            words.iter().filter_map(|word| word.parse().ok()).collect()
        }
        let words = |key: &str| -> Vec<&str> {
            when.split_whitespace()
                .filter_map(|part| part.split_once('='))
                .filter(|(found, _)| *found == key)
                .flat_map(|(_, values)| values.split(','))
                .collect()
        };
        let modes: Vec<&str> = words("mode")
            .into_iter()
            .map(|mode| if mode == "subtract" { "inclusive-minus-input" } else { mode })
            .collect();
        Self {
            name: name.to_owned(),
            kind: words("kind").first().map_or_else(String::new, |kind| (*kind).to_owned()),
            text: text.to_owned(),
            strategies: choices(&words("strategy")),
            layouts: choices(&words("layout")),
            patterns: choices(&words("pattern")),
            compositions: choices(&words("composition")),
            modes: choices(&modes),
            needs: words("need").into_iter().map(str::to_owned).collect(),
        }
    }

    /// Whether it can show only with this.
    pub fn needs(&self, what: &str) -> bool {
        self.needs.iter().any(|need| need == what)
    }

    /// Whether it is a fault of the host, which every kernel shows.
    pub fn is_of_host(&self) -> bool {
        self.kind == "host"
    }

    /// Whether nobody may report it.
    pub fn is_harmless(&self) -> bool {
        self.kind == "harmless"
    }
}

/// The number that chooses it at compile time, as `cuda/mutants.cuh` computes it: FNV-1a, 32 bits.
pub const fn number(name: &str) -> u32 {
    let bytes = name.as_bytes();
    let mut hash = 2_166_136_261_u32;
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u32).wrapping_mul(16_777_619);
        i += 1;
    }
    hash
}

/// The hooks of one file. Those with an empty `when` only name a mutant again.
fn parse(source: &str) -> Vec<Hook> {
    let mut hooks = Vec::new();
    for part in source.split("MUTANT(").skip(1) {
        let Some((name, rest)) = part.split_once(',') else { continue };
        let mut strings = rest.splitn(5, '"');
        let (Some(_), Some(when), Some(_), Some(text)) =
            (strings.next(), strings.next(), strings.next(), strings.next())
        else {
            continue;
        };
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if is_name && !when.is_empty() {
            hooks.push(Hook::new(name, when, text));
        }
    }
    hooks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_read_from_the_sources() {
        let hooks = Hook::all();
        assert!(hooks.len() >= 60, "{}", hooks.len());
        let vector = Hook::find("packed_128_vector").expect("a mutant of the packed layout");
        assert_eq!(vector.layouts, [Descriptor::Packed128]);
        assert_eq!(vector.kind, "ordering");
        let last = Hook::find("last_input_read").expect("a mutant of the exclusive scan");
        assert_eq!(last.modes, [Mode::Exclusive]);
        assert_eq!(last.strategies.len(), 4);
        assert!(
            Hook::find("windows_swapped").is_some_and(|hook| hook.needs("windows") && hook.needs("non-commutative"))
        );
        assert!(Hook::find(ONE_WORKSPACE).is_some_and(|hook| hook.is_of_host()));
        assert!(hooks.iter().all(|hook| !hook.kind.is_empty() && !hook.text.is_empty()), "{hooks:?}");
        assert!(hooks.iter().filter(|hook| hook.is_harmless()).count() >= 5);
    }
}
