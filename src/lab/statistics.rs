//! Medians, quartiles, how sure a median is, and how two sets of samples compare.
//!
//! Times of one kernel are skewed (nothing makes it faster than it can be, much makes it slower) and now and
//! then two-peaked, so everything here rests on order, not on a bell curve.

use crate::names::named;
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
    /// Standard error of the median, in the unit of the samples. From [`RANKED_SAMPLES`] on it is a quarter of
    /// the interval that holds the median in 95 % of all cases, which the ranks n/2 ± √n bound whatever the shape
    /// is; samples with two peaks and the median between them are common. Shorter series have too few ranks
    /// there: 1.2533·σ/√n with σ = IQR/1.349, which is exact for a bell curve. Neither sees single outliers.
    pub standard_error: f64,
    /// Standard errors of the lower and the upper quartile, likewise.
    pub quartile_errors: [f64; 2],
}

/// From so many samples on the ranks around a quantile say how sure it is.
pub const RANKED_SAMPLES: usize = 40;

impl Summary {
    /// `None` without samples.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let quantile = |share: f64| quantile_of_sorted(&sorted, share.clamp(0.0, 1.0));
        let (lower_quartile, upper_quartile) = (quantile(0.25)?, quantile(0.75)?);
        let count = sorted.len();
        // `of_bell_curve` is the standard error of the quantile of a bell curve, by σ/√n.
        let error = |share: f64, of_bell_curve: f64| {
            if count < RANKED_SAMPLES {
                return Some(of_bell_curve * (upper_quartile - lower_quartile) / 1.349 / (count as f64).sqrt());
            }
            let reach = 2.0 * (share * (1.0 - share) * count as f64).sqrt() / (count - 1) as f64;
            Some((quantile(share + reach)? - quantile(share - reach)?) / 4.0)
        };
        Some(Self {
            median: quantile(0.5)?,
            lower_quartile,
            upper_quartile,
            minimum: *sorted.first()?,
            maximum: *sorted.last()?,
            count,
            standard_error: error(0.5, 1.2533)?,
            quartile_errors: [error(0.25, 1.3626)?, error(0.75, 1.3626)?],
        })
    }

    /// Distance of the quartiles.
    pub fn spread(&self) -> f64 {
        self.upper_quartile - self.lower_quartile
    }
}

named! {
    /// What two sets of samples say about each other.
    pub enum Difference as "difference" {
        /// The new times are shorter by more than the threshold.
        Faster = "faster",
        /// They differ by less than the threshold.
        Same = "same",
        /// The samples do not decide.
        Unclear = "unclear",
        /// The new times are longer by more than the threshold.
        Slower = "slower",
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
    pub fn difference(&self, threshold: f64) -> Difference {
        if self.low > 1.0 + threshold {
            Difference::Slower
        } else if self.high < 1.0 / (1.0 + threshold) {
            Difference::Faster
        } else if self.high <= 1.0 + threshold && self.low >= 1.0 / (1.0 + threshold) {
            Difference::Same
        } else {
            Difference::Unclear
        }
    }
}

/// Where the median of samples that are drawn anew lies but for one draw in a million, whatever their shape.
fn reach_of_median(samples: &[f64]) -> Option<(f64, f64)> {
    // Half of n draws lie beyond the quantile q with a probability of P(Bin(n, q) ≥ n/2).
    let share = match samples.len() {
        100.. => 0.2,
        30.. => 0.1,
        _ => 0.0,
    };
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some((quantile_of_sorted(&sorted, share)?, quantile_of_sorted(&sorted, 1.0 - share)?))
}

/// Compares two sets of samples; too few of them are unclear.
pub fn compare(old: &[f64], new: &[f64], threshold: f64) -> Difference {
    // Most sets lie so far apart that no draw could bring them together: there is nothing to bootstrap.
    if old.len() >= FEWEST_SAMPLES
        && new.len() >= FEWEST_SAMPLES
        && let (Some((old_low, old_high)), Some((new_low, new_high))) = (reach_of_median(old), reach_of_median(new))
        && old_low > 0.0
    {
        if new_low > old_high * (1.0 + threshold) {
            return Difference::Slower;
        }
        if new_high * (1.0 + threshold) < old_low {
            return Difference::Faster;
        }
    }
    Ratio::bootstrap(old, new).map_or(Difference::Unclear, |ratio| ratio.difference(threshold))
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

    /// Standard deviation of the medians of 400 series, and the standard error that these claim on average.
    fn found_and_claimed(series: impl Fn(u64) -> Vec<f64>) -> (f64, f64) {
        let summaries: Vec<Summary> = (0..400).map(|seed| Summary::of(&series(seed)).unwrap()).collect();
        let mean = |values: &dyn Fn(&Summary) -> f64| summaries.iter().map(values).sum::<f64>() / 400.0;
        let middle = mean(&|summary| summary.median);
        (mean(&|summary| (summary.median - middle).powi(2)).sqrt(), mean(&|summary| summary.standard_error))
    }

    #[test]
    fn the_standard_error_is_about_that_of_repeated_medians() {
        for count in [RANKED_SAMPLES / 2, RANKED_SAMPLES, 200] {
            let (found, claimed) = found_and_claimed(|seed| noisy(100.0, 0.02, count, seed));
            assert!((claimed / found - 1.0).abs() < 0.15, "{count} samples: claimed {claimed}, found {found}");
        }
    }

    #[test]
    fn the_standard_error_of_samples_with_two_peaks_says_where_the_median_may_lie() {
        let two_peaks = |share: f64| {
            move |seed: u64| {
                let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0x5eed);
                let mut is_high = || (random.next_u64() as f64 / 2f64.powi(64)) < share;
                let low = noisy(100.0, 0.005, 100, seed);
                low.into_iter().map(|time| if is_high() { time + 14.0 } else { time }).collect::<Vec<_>>()
            }
        };
        // Between equal peaks it may lie anywhere from one to the other, so it is not sure at all.
        let (found, claimed) = found_and_claimed(two_peaks(0.5));
        assert!(found > 3.0 && claimed > 2.0, "claimed {claimed}, found {found}");
        // The quartiles are, each in a peak.
        let [lower, upper] = Summary::of(&two_peaks(0.5)(1)).unwrap().quartile_errors;
        assert!(lower < 0.3 && upper < 0.3, "{lower} {upper}");
        // In the larger of two peaks it is sure, however far away the smaller is.
        let (found, claimed) = found_and_claimed(two_peaks(0.3));
        assert!(found < 0.3 && claimed < 0.3, "claimed {claimed}, found {found}");
    }

    #[test]
    fn one_outlier_moves_neither_median_nor_its_error() {
        let mut samples = noisy(100.0, 0.01, 30, 1);
        let before = Summary::of(&samples).unwrap();
        samples.push(1e6);
        let after = Summary::of(&samples).unwrap();
        assert!((after.median / before.median - 1.0).abs() < 0.005);
        assert!(after.standard_error < 1.3 * before.standard_error);
    }

    #[test]
    fn equal_sets_are_same_and_a_difference_of_five_percent_is_told_every_time() {
        for seed in 0..50 {
            let old = noisy(100.0, 0.004, 30, 2 * seed);
            let equal = noisy(100.0, 0.004, 30, 2 * seed + 1);
            let slower = noisy(105.0, 0.004, 30, 2 * seed + 1);
            assert_eq!(compare(&old, &equal, 0.01), Difference::Same, "seed {seed}");
            assert_eq!(compare(&old, &slower, 0.01), Difference::Slower, "seed {seed}");
            assert_eq!(compare(&slower, &old, 0.01), Difference::Faster, "seed {seed}");
        }
    }

    #[test]
    fn noise_larger_than_the_difference_is_unclear_and_never_wrong() {
        for seed in 0..50 {
            let old = noisy(100.0, 0.1, 10, 2 * seed);
            let new = noisy(102.0, 0.1, 10, 2 * seed + 1);
            assert_ne!(compare(&old, &new, 0.01), Difference::Faster, "seed {seed}");
            assert_ne!(compare(&old, &new, 0.01), Difference::Same, "seed {seed}");
        }
    }

    #[test]
    fn medians_alone_do_not_decide() {
        // The medians differ by 3 %; the samples are too few and too wide to know.
        assert_eq!(
            compare(&[90.0, 100.0, 110.0, 95.0, 105.0], &[93.0, 103.0, 113.0, 98.0, 108.0], 0.01),
            Difference::Unclear
        );
        assert_eq!(compare(&[100.0; 4], &[200.0; 4], 0.01), Difference::Unclear);
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
            let expected = match ratio.difference(0.01) {
                Difference::Faster => Difference::Slower,
                Difference::Slower => Difference::Faster,
                other => other,
            };
            prop_assert_eq!(swapped.difference(0.01), expected);
        }
    }
}
