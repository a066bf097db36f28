//! Enums whose variants have names on the command line, in files and in plots.

/// A word that names no choice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{found}' is no {what}; choose one of: {choices}")]
pub struct UnknownName {
    /// What was asked for, for example "strategy".
    pub what: &'static str,
    /// The word that was given.
    pub found: String,
    /// All words that would do.
    pub choices: String,
}

/// Declares an enum whose variants have names on the command line, in files and in plots.
macro_rules! named {
    ($(#[$meta:meta])* $visibility:vis enum $name:ident as $what:literal { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        $visibility enum $name { $($(#[$variant_meta])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            /// Every choice, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name on the command line, in files and in plots.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.name())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::names::UnknownName;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::names::choose($what, text, Self::ALL, Self::name)
            }
        }
    };
}
pub(crate) use named;

/// The choice called `text`.
///
/// # Errors
/// When none is; the error names all of them.
pub(crate) fn choose<T: Copy>(
    what: &'static str,
    text: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, UnknownName> {
    all.iter().copied().find(|&choice| name(choice) == text).ok_or_else(|| UnknownName {
        what,
        found: text.to_owned(),
        choices: all.iter().map(|&choice| name(choice)).collect::<Vec<_>>().join(", "),
    })
}
