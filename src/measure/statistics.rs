//! Medians, quartiles, how sure a median is, and how two sets of samples compare.
//!
//! Times of one kernel are skewed (nothing makes it faster than it can be, much makes it slower) and now and
//! then two-peaked, so everything here rests on order, not on a bell curve.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The sample below which `share` of the samples lie, between neighbours linearly. `sorted` is ascending.
fn quantile_of_sorted(sorted: &[f64], share: f64) -> Option<f64> {
    let position = share * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    Some(below + (above - below) * position.fract())
}

/// Middle and spread of a set of samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Half of the samples are no larger.
    pub median: f64,
    /// A quarter of the samples are no larger.
    pub lower_quartile: f64,
    /// Three quarters of the samples are no larger.
    pub upper_quartile: f64,
    /// The smallest.
    pub minimum: f64,
    /// The largest.
    pub maximum: f64,
    /// How many.
    pub count: usize,
}

impl Summary {
    /// `None` without samples.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            median: quantile_of_sorted(&sorted, 0.5)?,
            lower_quartile: quantile_of_sorted(&sorted, 0.25)?,
            upper_quartile: quantile_of_sorted(&sorted, 0.75)?,
            minimum: *sorted.first()?,
            maximum: *sorted.last()?,
            count: sorted.len(),
        })
    }

    /// Standard error of the median, relative to it, from the distance of the quartiles: 1.2533·σ/√n with
    /// σ = IQR/1.349, which is exact for a bell curve and does not see single outliers.
    pub fn relative_standard_error(&self) -> f64 {
        if self.median <= 0.0 {
            return 0.0;
        }
        1.2533 * self.relative_spread() / 1.349 / (self.count as f64).sqrt()
    }

    /// Distance of the quartiles, relative to the median.
    pub fn relative_spread(&self) -> f64 {
        if self.median <= 0.0 { 0.0 } else { (self.upper_quartile - self.lower_quartile) / self.median }
    }
}

/// What two sets of samples say about each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The new times are shorter by more than the threshold.
    Faster,
    /// They differ by less than the threshold.
    Same,
    /// The samples do not decide.
    Unclear,
    /// The new times are longer by more than the threshold.
    Slower,
}

impl Verdict {
    /// The word in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Same => "same",
            Self::Unclear => "unclear",
            Self::Slower => "slower",
        }
    }
}

/// The ratio of two medians, and the interval that holds it at the given confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// New median by old median.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Fewer samples than this on either side decide nothing.
pub const FEWEST_SAMPLES: usize = 5;
const RESAMPLES: usize = 2000;
/// Confidence of the interval: a sweep compares hundreds of configurations, and each false alarm costs trust.
const CONFIDENCE: f64 = 0.99;

impl Ratio {
    /// Bootstraps the ratio of medians: both sets are drawn anew, with replacement, `RESAMPLES` times; the
    /// interval is what 99 % of the drawn ratios lie in. Seeded, so the same samples give the same answer.
    /// `None` with fewer than [`FEWEST_SAMPLES`] samples on either side or a median of 0.
    pub fn bootstrap(old: &[f64], new: &[f64]) -> Option<Self> {
        if old.len() < FEWEST_SAMPLES || new.len() < FEWEST_SAMPLES {
            return None;
        }
        let (old_median, new_median) = (Summary::of(old)?.median, Summary::of(new)?.median);
        if old_median <= 0.0 {
            return None;
        }
        let mut random = Pcg64Mcg::seed_from_u64(0x6c6f_6f6b_6261_636b);
        let mut scratch = Vec::new();
        let mut draw = |samples: &[f64]| {
            scratch.clear();
            for _ in 0..samples.len() {
                let index = (u128::from(random.next_u64()) * samples.len() as u128) >> 64;
                scratch.push(samples[index as usize]);
            }
            scratch.sort_by(f64::total_cmp);
            quantile_of_sorted(&scratch, 0.5)
        };
        let mut ratios = Vec::with_capacity(RESAMPLES);
        for _ in 0..RESAMPLES {
            let (below, above) = (draw(old)?, draw(new)?);
            if below > 0.0 {
                ratios.push(above / below);
            }
        }
        ratios.sort_by(f64::total_cmp);
        let tail = (1.0 - CONFIDENCE) / 2.0;
        Some(Self {
            ratio: new_median / old_median,
            low: quantile_of_sorted(&ratios, tail)?,
            high: quantile_of_sorted(&ratios, 1.0 - tail)?,
        })
    }

    /// What the interval says where differences up to `threshold` (0.01 for 1 %) are of no consequence. Only
    /// an interval that lies wholly on one side decides.
    pub fn verdict(&self, threshold: f64) -> Verdict {
        if self.low > 1.0 + threshold {
            Verdict::Slower
        } else if self.high < 1.0 / (1.0 + threshold) {
            Verdict::Faster
        } else if self.high <= 1.0 + threshold && self.low >= 1.0 / (1.0 + threshold) {
            Verdict::Same
        } else {
            Verdict::Unclear
        }
    }
}

/// Compares two sets of samples; too few of them are unclear.
pub fn compare(old: &[f64], new: &[f64], threshold: f64) -> Verdict {
    Ratio::bootstrap(old, new).map_or(Verdict::Unclear, |ratio| ratio.verdict(threshold))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Roughly a bell curve around `mean`, by twelve uniform numbers.
    fn noisy(mean: f64, relative_deviation: f64, count: usize, seed: u64) -> Vec<f64> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut normal = || (0..12).map(|_| random.next_u64() as f64 / 2f64.powi(64)).sum::<f64>() - 6.0;
        (0..count).map(|_| mean * (1.0 + relative_deviation * normal())).collect()
    }

    #[test]
    fn quartiles_lie_between_samples() {
        let summary = Summary::of(&[4.0, 1.0, 2.0, 3.0, 5.0]).unwrap();
        assert_eq!((summary.minimum, summary.lower_quartile, summary.median), (1.0, 2.0, 3.0));
        assert_eq!((summary.upper_quartile, summary.maximum, summary.count), (4.0, 5.0, 5));
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[7.0]).unwrap().upper_quartile, 7.0);
    }

    #[test]
    fn the_standard_error_is_about_that_of_repeated_medians() {
        let medians: Vec<f64> =
            (0..400).map(|seed| Summary::of(&noisy(100.0, 0.02, 40, seed)).unwrap().median).collect();
        let mean = medians.iter().sum::<f64>() / medians.len() as f64;
        let deviation =
            (medians.iter().map(|median| (median - mean).powi(2)).sum::<f64>() / medians.len() as f64).sqrt() / mean;
        let claimed = (0..400)
            .map(|seed| Summary::of(&noisy(100.0, 0.02, 40, seed)).unwrap().relative_standard_error())
            .sum::<f64>()
            / 400.0;
        assert!((claimed / deviation - 1.0).abs() < 0.15, "claimed {claimed}, found {deviation}");
    }

    #[test]
    fn one_outlier_moves_neither_median_nor_its_error() {
        let mut samples = noisy(100.0, 0.01, 30, 1);
        let before = Summary::of(&samples).unwrap();
        samples.push(1e6);
        let after = Summary::of(&samples).unwrap();
        assert!((after.median / before.median - 1.0).abs() < 0.005);
        assert!(after.relative_standard_error() < 1.3 * before.relative_standard_error());
    }

    #[test]
    fn equal_sets_are_same_and_a_difference_of_five_percent_is_told_every_time() {
        for seed in 0..50 {
            let old = noisy(100.0, 0.004, 30, 2 * seed);
            let equal = noisy(100.0, 0.004, 30, 2 * seed + 1);
            let slower = noisy(105.0, 0.004, 30, 2 * seed + 1);
            assert_eq!(compare(&old, &equal, 0.01), Verdict::Same, "seed {seed}");
            assert_eq!(compare(&old, &slower, 0.01), Verdict::Slower, "seed {seed}");
            assert_eq!(compare(&slower, &old, 0.01), Verdict::Faster, "seed {seed}");
        }
    }

    #[test]
    fn noise_larger_than_the_difference_is_unclear_and_never_wrong() {
        for seed in 0..50 {
            let old = noisy(100.0, 0.1, 10, 2 * seed);
            let new = noisy(102.0, 0.1, 10, 2 * seed + 1);
            assert_ne!(compare(&old, &new, 0.01), Verdict::Faster, "seed {seed}");
            assert_ne!(compare(&old, &new, 0.01), Verdict::Same, "seed {seed}");
        }
    }

    #[test]
    fn medians_alone_do_not_decide() {
        // The medians differ by 3 %; the samples are too few and too wide to know.
        assert_eq!(
            compare(&[90.0, 100.0, 110.0, 95.0, 105.0], &[93.0, 103.0, 113.0, 98.0, 108.0], 0.01),
            Verdict::Unclear
        );
        assert_eq!(compare(&[100.0; 4], &[200.0; 4], 0.01), Verdict::Unclear);
    }

    proptest! {
        #[test]
        fn swapping_old_and_new_swaps_the_verdict(
            old in prop::collection::vec(50.0..150.0f64, 5..40),
            new in prop::collection::vec(50.0..150.0f64, 5..40),
        ) {
            let ratio = Ratio::bootstrap(&old, &new).unwrap();
            prop_assert!(ratio.low <= ratio.high);
            let swapped = Ratio { ratio: 1.0 / ratio.ratio, low: 1.0 / ratio.high, high: 1.0 / ratio.low };
            let expected = match ratio.verdict(0.01) {
                Verdict::Faster => Verdict::Slower,
                Verdict::Slower => Verdict::Faster,
                other => other,
            };
            prop_assert_eq!(swapped.verdict(0.01), expected);
        }
    }
}
