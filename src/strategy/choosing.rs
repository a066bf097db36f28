//! What a scanner takes for each of its scans.

use super::plan::ScanRequest;
use super::tuning::{Resolved, Tuning, TuningError, TuningTable};
use super::{Mode, ScanConfig, StrategyChoice};
use crate::element::Problem;
use crate::gpu::Gpu;

/// What a scanner on a GPU of some kind goes by.
#[derive(Debug, Clone)]
pub struct Choices {
    pub(crate) gpu: Gpu,
    pub(super) strategy: StrategyChoice,
    /// `None` takes what the tuning table names or, of a named strategy, what is suggested for the size.
    pub(super) config: Option<ScanConfig>,
    pub(crate) tuning: Tuning,
}

impl From<Gpu> for Choices {
    fn from(gpu: Gpu) -> Self {
        Self::on(gpu)
    }
}

impl Choices {
    /// By `auto`: the strategy and the configuration that the tuning table of the GPU names for type, operator and size
    /// ([`crate::strategy::tuning`]).
    pub fn on(gpu: Gpu) -> Self {
        Self { gpu, strategy: StrategyChoice::Auto, config: None, tuning: Tuning::committed(gpu) }
    }

    /// Those that lead to the strategy and configuration of this request; the GPU plays no part, because both are named.
    #[cfg(feature = "lab")]
    pub(crate) fn made_by(request: &ScanRequest) -> Self {
        Self::on(Gpu::default()).with_strategy(request.strategy).with_config(request.config)
    }

    /// Another strategy, or `auto` again.
    #[must_use]
    pub fn with_strategy(self, strategy: impl Into<StrategyChoice>) -> Self {
        Self { strategy: strategy.into(), ..self }
    }

    /// Other choices inside the strategy; with `auto`, inside whatever strategy the table names.
    #[must_use]
    pub fn with_config(self, config: ScanConfig) -> Self {
        Self { config: Some(config), ..self }
    }

    /// What another tuning table says, for example one that `lookback tune` made on such a GPU. It counts where the strategy is
    /// `auto`, but for compactions without rows of their own where it has `lookahead`: these were measured by themselves.
    ///
    /// # Errors
    /// When a block of this GPU cannot hold the tile of one of its rows, or one needs clusters that it has not; the error names the row.
    pub fn with_tuning(self, table: &TuningTable) -> Result<Self, TuningError> {
        Ok(Self { tuning: Tuning::with_table(table, self.gpu)?, ..self })
    }

    /// The scan of `n` numbers from one address to another.
    pub(crate) fn scan_of_numbers(&self, (problem, mode): (Problem, Mode), addresses: [u64; 2], n: u64) -> ScanRequest {
        let offsets @ [input_offset, output_offset] =
            addresses.map(|address| (address % u64::from(ScanRequest::OFFSETS)) as u32);
        let Resolved { strategy, config } = self.tuning.choose(self.strategy, problem, n, None, offsets);
        let config = self.config.unwrap_or(config);
        ScanRequest { input_offset, output_offset, ..ScanRequest::of(problem, strategy, mode, config, n) }
    }
}
