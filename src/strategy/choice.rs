//! A strategy, or `auto`.

use super::table::Strategy;
use crate::names::UnknownName;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A strategy by name, or what the tuning table of the GPU names for the size ([`crate::strategy::tuning`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum StrategyChoice {
    /// This one.
    Named(Strategy),
    /// The one that the tuning table names for the instance, the size and the GPU.
    Auto,
}

impl StrategyChoice {
    /// Every choice: the strategies in their order, then `auto`.
    pub const ALL: &'static [Self] = &{
        let mut all = [Self::Auto; Strategy::ALL.len() + 1];
        let mut index = 0;
        while index < Strategy::ALL.len() {
            all[index] = Self::Named(Strategy::ALL[index]);
            index += 1;
        }
        all
    };

    /// The name on the command line, in files and in plots.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Named(strategy) => strategy.name(),
            Self::Auto => "auto",
        }
    }
}

impl From<Strategy> for StrategyChoice {
    fn from(strategy: Strategy) -> Self {
        Self::Named(strategy)
    }
}

impl fmt::Display for StrategyChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for StrategyChoice {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        crate::names::choose("strategy", text, Self::ALL, Self::name)
    }
}

impl TryFrom<String> for StrategyChoice {
    type Error = UnknownName;
    fn try_from(text: String) -> Result<Self, UnknownName> {
        text.parse()
    }
}

impl From<StrategyChoice> for String {
    fn from(choice: StrategyChoice) -> Self {
        choice.name().to_owned()
    }
}
