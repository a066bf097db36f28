//! The clocks that samples ran at. One that ran at a lower clock than the others says nothing of the code.

use std::collections::BTreeMap;

/// The clocks of a whole run, of which each sample's is judged by the median.
#[derive(Debug, Clone, Default)]
pub struct Clocks {
    /// How often each clock was seen, in steps of 5 MHz.
    histogram: BTreeMap<u32, u64>,
    count: u64,
}

/// A sample counts if its clock is at least this share of the run's median.
pub const ACCEPTED_CLOCK_SHARE: f64 = 0.95;
const CLOCK_STEP_MEGAHERTZ: f64 = 5.0;

impl Clocks {
    pub(super) fn add(&mut self, megahertz: f64) {
        *self.histogram.entry((megahertz / CLOCK_STEP_MEGAHERTZ).round() as u32).or_default() += 1;
        self.count += 1;
    }

    /// The median in megahertz; `None` before the first.
    pub fn median_megahertz(&self) -> Option<f64> {
        let mut below = 0;
        for (&step, &count) in &self.histogram {
            below += count;
            if 2 * below >= self.count {
                return Some(f64::from(step) * CLOCK_STEP_MEGAHERTZ);
            }
        }
        None
    }

    pub(super) fn accepts(&self, megahertz: Option<f64>) -> bool {
        match (megahertz, self.median_megahertz()) {
            (Some(clock), Some(median)) => clock >= ACCEPTED_CLOCK_SHARE * median,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_clock_is_the_middle_of_all() {
        let mut clocks = Clocks::default();
        assert_eq!(clocks.median_megahertz(), None);
        for clock in [1200.0, 1980.0, 1980.0, 1983.0, 1750.0] {
            clocks.add(clock);
        }
        assert_eq!(clocks.median_megahertz(), Some(1980.0));
    }
}
