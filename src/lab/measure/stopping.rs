//! When a series of samples is enough: by noise, not by count.

use crate::lab::statistics::Summary;
use serde::{Deserialize, Serialize};
use std::fmt;

/// When a series of samples is long enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoppingRule {
    /// Never fewer accepted samples than this.
    pub minimum_samples: usize,
    /// Never more.
    pub maximum_samples: usize,
    /// Enough if the standard error of the median, relative to it, is no larger than this.
    pub relative_standard_error: f64,
}

/// What the samples of a series are judged against.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Scale {
    /// Subtracted from every sample before it is published; the error asked for is relative to what remains.
    pub offset_nanoseconds: f64,
    /// Step of the clock divided by the runs of a sample.
    pub resolution_nanoseconds: f64,
}

/// Why a series ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// The standard error of the median is small enough, and both halves of the series agree.
    Noise,
    /// More samples would not help: a long series whose halves agree in median and spread, and whose standard error is
    /// not much larger than asked for.
    Plateau,
    /// The samples have two peaks, and the median lies somewhere between them. Where the peaks are is known: the
    /// quartiles of a long series have small errors, and its halves agree on them.
    TwoPeaks,
    /// The maximum of samples was taken and none of the above holds.
    MaximumSamples,
    /// Time-out before the minimum of samples.
    TimeOutTooFew,
    /// Time-out, enough samples, and none of the above holds.
    TimeOutNoise,
    /// Time-out or maximum, because most samples ran at reduced clock. The figure is made of all of them and
    /// not to be trusted.
    ReducedClock,
}

impl Stop {
    /// Whether a criterion was met.
    pub const fn is_met(self) -> bool {
        matches!(self, Self::Noise | Self::Plateau | Self::TwoPeaks)
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Noise => "noise criterion met",
            Self::Plateau => "plateau",
            Self::TwoPeaks => "two peaks, the median between them",
            Self::MaximumSamples => "maximum of samples, noise criterion not met",
            Self::TimeOutTooFew => "time-out: too few samples",
            Self::TimeOutNoise => "time-out: noise criterion not met",
            Self::ReducedClock => "clock reduced most of the time",
        })
    }
}

/// Fewest samples of a plateau.
pub(super) const PLATEAU_SAMPLES: usize = 40;
/// By how much larger than asked for the standard error may be at a plateau.
const PLATEAU_ERROR: f64 = 3.0;
/// Fewest samples of two peaks; fewer may be a median that is not sure yet.
const PEAKS_SAMPLES: usize = 200;
/// How many times as wide as the other half's the spread of one half may be.
const PLATEAU_SPREAD: f64 = 2.0;
/// Medians of two halves that lie no further apart than this agree, relative to the median of all: differences
/// below it are of no consequence anywhere here.
const DRIFT: f64 = 0.01;
/// Halves agree as well if they lie no further apart than so many standard errors of their difference: three,
/// because a sweep has thousands of series, and one in twenty of them lies beyond two by chance.
const DRIFT_ERRORS: f64 = 3.0;
/// So few samples are enough at the time-out if their noise is small: those of a slow subject.
pub const FEWEST_SAMPLES: usize = 10;

/// What the rule makes of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Judgement {
    /// A criterion is met.
    Enough(Stop),
    /// None is, and what is in the way.
    More(Unmet),
}

/// What keeps a series from meeting a criterion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unmet {
    /// Fewer samples than the minimum.
    TooFew { samples: usize, minimum: usize },
    /// The median is not sure enough: its standard error and what a plateau would be allowed, relative to what is
    /// published.
    StandardError { found: f64, allowed: f64 },
    /// The second half's median is larger than the first's by `change`, relative to what is published: the halves
    /// disagree.
    Drift { change: f64 },
    /// One half is `ratio` times as wide as the other, and the median not sure enough to overlook that.
    Spread { ratio: f64 },
    /// Most samples ran at reduced clock.
    Clock,
}

impl fmt::Display for Unmet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooFew { samples, minimum } => write!(formatter, "{samples} samples of at least {minimum}"),
            Self::StandardError { found, allowed } => write!(
                formatter,
                "standard error of the median {:.2} %, {:.2} % would be a plateau",
                100.0 * found,
                100.0 * allowed
            ),
            Self::Drift { change } => {
                write!(formatter, "a drift: {:+.1} % from the first half to the second", 100.0 * change)
            }
            Self::Spread { ratio } => write!(formatter, "one half is {ratio:.1} times as noisy as the other"),
            Self::Clock => formatter.write_str("most samples ran at reduced clock"),
        }
    }
}

impl StoppingRule {
    /// Whether these accepted samples, in the order in which they were taken, are enough.
    pub fn judge(&self, accepted: &[f64], scale: &Scale) -> Judgement {
        let too_few = Unmet::TooFew { samples: accepted.len(), minimum: self.minimum_samples.max(2) };
        if accepted.len() < self.minimum_samples.max(2) {
            return Judgement::More(too_few);
        }
        let (first, second) = accepted.split_at(accepted.len() / 2);
        let (Some(all), Some(first), Some(second)) = (Summary::of(accepted), Summary::of(first), Summary::of(second))
        else {
            return Judgement::More(too_few);
        };
        let published = (all.median - scale.offset_nanoseconds).max(0.0);
        // A median of samples that are whole steps is never surer than half a step.
        let sure = |share: f64, error: f64| error <= (share * published).max(scale.resolution_nanoseconds / 2.0);
        let agree = |of: fn(&Summary) -> (f64, f64)| {
            let ((before, before_error), (after, after_error)) = (of(&first), of(&second));
            let by_chance = DRIFT_ERRORS * before_error.hypot(after_error);
            (after - before).abs() <= (DRIFT * published).max(by_chance).max(scale.resolution_nanoseconds)
        };
        let relative = |nanoseconds: f64| if published > 0.0 { nanoseconds / published } else { f64::INFINITY };
        let allowed = PLATEAU_ERROR * self.relative_standard_error;
        let (least, most) = (first.spread().min(second.spread()), first.spread().max(second.spread()));
        let unmet = if !agree(|half| (half.median, half.standard_error)) {
            Unmet::Drift { change: relative(second.median - first.median) }
        } else if sure(self.relative_standard_error, all.standard_error) {
            return Judgement::Enough(Stop::Noise);
        } else if accepted.len() < PLATEAU_SAMPLES || !sure(allowed, all.standard_error) {
            Unmet::StandardError { found: relative(all.standard_error), allowed }
        } else if most > PLATEAU_SPREAD * least + scale.resolution_nanoseconds {
            Unmet::Spread { ratio: most / least }
        } else {
            return Judgement::Enough(Stop::Plateau);
        };
        let has_two_peaks = accepted.len() >= PEAKS_SAMPLES
            && !sure(allowed, all.standard_error)
            && all.quartile_errors.iter().all(|&error| sure(allowed, error))
            && agree(|half| (half.lower_quartile, half.quartile_errors[0]))
            && agree(|half| (half.upper_quartile, half.quartile_errors[1]));
        if has_two_peaks { Judgement::Enough(Stop::TwoPeaks) } else { Judgement::More(unmet) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    const RULE: StoppingRule =
        StoppingRule { minimum_samples: 10, maximum_samples: 200, relative_standard_error: 0.005 };

    #[test]
    fn a_drift_is_no_plateau() {
        let unmet = |samples: Vec<f64>| match RULE.judge(&samples, &Scale::default()) {
            Judgement::More(unmet) => unmet,
            Judgement::Enough(stop) => panic!("{stop}"),
        };
        let is_drift = |unmet| matches!(unmet, Unmet::Drift { change } if change > 0.0);
        assert!(is_drift(unmet((0..100).map(|index| 100.0 + f64::from(index)).collect())));
        assert!(is_drift(unmet((0..100).map(|index| f64::from(if index < 50 { 100 } else { 120 })).collect())));
        // One so slow that the standard error, which takes samples for independent, says nothing of it.
        assert!(is_drift(unmet((0..100).map(|index| 100.0 + 0.03 * f64::from(index)).collect())));
        let noisier = (0..100).map(|index| 100.0 + f64::from(index * 37 % 10) * if index < 50 { 0.3 } else { 2.0 });
        assert!(matches!(unmet(noisier.collect()), Unmet::Drift { .. } | Unmet::Spread { .. }));
    }

    #[test]
    fn two_peaks_with_the_median_between_them_are_said_to_be_that() {
        let mut random = Pcg64Mcg::seed_from_u64(5);
        let mut uniform = || random.next_u64() as f64 / 2f64.powi(64);
        // As of a scan of two launches: 0.9 us apart, half of the samples in each.
        let samples: Vec<f64> =
            (0..PEAKS_SAMPLES).map(|_| 5e3 + 200.0 * uniform() + if uniform() < 0.5 { 900.0 } else { 0.0 }).collect();
        let judge = |samples: &[f64]| RULE.judge(samples, &Scale::default());
        assert_eq!(judge(&samples), Judgement::Enough(Stop::TwoPeaks));
        assert!(matches!(judge(&samples[..PEAKS_SAMPLES / 2]), Judgement::More(_)));
        // One peak after the other is no property of the subject.
        let mut sorted = samples;
        sorted.sort_by(f64::total_cmp);
        assert!(matches!(judge(&sorted), Judgement::More(Unmet::Drift { .. })));
    }

    #[test]
    fn nothing_is_asked_to_be_surer_than_half_a_step_of_the_clock() {
        // Steps of 32 ns on 2 us: half a step is 0.8 %, more than the 0.5 % asked for.
        let stepped: Vec<f64> = (0..30).map(|index| 2000.0 + 32.0 * f64::from(index * 7 % 5)).collect();
        let scale = Scale { resolution_nanoseconds: 32.0, ..Scale::default() };
        assert_eq!(RULE.judge(&stepped, &scale), Judgement::Enough(Stop::Noise));
        assert!(matches!(RULE.judge(&stepped, &Scale::default()), Judgement::More(_)));
    }

    #[test]
    fn what_is_asked_of_a_time_without_the_frame_is_that_of_what_remains() {
        let samples: Vec<f64> = (0..30).map(|index| 4000.0 + 20.0 * f64::from(index * 7 % 10)).collect();
        assert_eq!(RULE.judge(&samples, &Scale::default()), Judgement::Enough(Stop::Noise));
        let scale = Scale { offset_nanoseconds: 3000.0, ..Scale::default() };
        assert!(
            matches!(RULE.judge(&samples, &scale), Judgement::More(Unmet::StandardError { found, .. }) if found > 0.005)
        );
    }
}
