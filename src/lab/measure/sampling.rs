//! Which samples are taken, in which order, when it is enough, and which are thrown away.
//!
//! Everything that is compared at a point is sampled in rounds: each round takes one sample of each subject,
//! in an order that is shuffled anew from a stored seed. Clocks and temperatures drift over seconds, rounds
//! take milliseconds, so drift meets all subjects alike. Nobody leaves the rounds before everybody is done.
//!
//! A sample brings the multiprocessor clock from right before and right after it. One that ran at less than
//! 95 % of the run's median clock is discarded and counted. Sampling stops by noise, see [`StoppingRule`];
//! a time-out says which criterion was not met.
//!
//! The loop knows nothing of GPUs: it asks an [`Executor`], and the tests below ask one of their own with
//! synthetic noise, drift, steps and throttling, whose clock is a number.

use super::statistics::Summary;
use crate::strategy::named;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

named! {
    /// What a time is the time of.
    pub enum Figure as "figure" {
        /// One run with nothing of its arrays in the L2; launch latency outside the events.
        Cold = "cold",
        /// Many launches on a stream one after the other: what a call costs. At small n the rate at which the
        /// host launches.
        Stream = "stream",
        /// Many runs in one replayed CUDA graph: the device's own time.
        Graph = "graph",
        /// From the host's call to the result visible on the host, the stream idle before.
        Latency = "latency",
    }
}

/// One sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Time of one run of the subject.
    pub nanoseconds: f64,
    /// Multiprocessor clock while it ran, the lower of right before and right after; `None` if not measured.
    pub clock_megahertz: Option<f64>,
    /// Whether the host queued the work too late, so that launch latency may be part of the time.
    pub is_late: bool,
}

/// Whether a subject can be measured so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// Samples can be taken.
    Ready,
    /// It cannot, and why: a call that waits for the device cannot be captured into a graph, for example.
    Unavailable(String),
}

/// What takes samples: a GPU, or a mock.
pub trait Executor {
    /// What can go wrong.
    type Error;

    /// The most runs that one sample of this figure can be made of; at least 1.
    fn maximum_runs(&self, subject: usize, figure: Figure) -> u32;

    /// Gets ready for samples of `runs` runs each.
    ///
    /// # Errors
    /// When the device failed.
    fn prepare(&mut self, subject: usize, figure: Figure, runs: u32) -> Result<Readiness, Self::Error>;

    /// Takes a sample of as many runs as were prepared for.
    ///
    /// # Errors
    /// When the device failed.
    fn sample(&mut self, subject: usize, figure: Figure, runs: u32) -> Result<Sample, Self::Error>;

    /// Time since some fixed moment.
    fn now(&self) -> Duration;

    /// The step of the clock that times a sample of this figure, in nanoseconds: no sample is finer.
    fn resolution_nanoseconds(&self, _: Figure) -> f64 {
        0.0
    }
}

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
    /// What is taken off every sample before it is published: the sureness asked for is that of what remains.
    pub offset_nanoseconds: f64,
    /// The step of the clock, by the runs that it is divided by.
    pub resolution_nanoseconds: f64,
}

/// Why a series ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// The standard error of the median is small enough, and both halves of the series agree.
    Noise,
    /// The noise is what it is: a long series whose halves agree in median and spread, and whose median is
    /// sure enough all the same.
    Plateau,
    /// Samples have two peaks and the median lies between them, anywhere; where the peaks are is sure: both
    /// quartiles of a long series are, and its halves agree on them.
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

/// Samples from which on a plateau can be told from chance.
const PLATEAU_SAMPLES: usize = 40;
/// By how much larger than asked for the standard error may be at a plateau.
const PLATEAU_ERROR: f64 = 3.0;
/// Samples from which on two peaks can be told from a median that is not sure yet.
const PEAKS_SAMPLES: usize = 200;
/// How many times as wide as the other half's the spread of one half may be.
const PLATEAU_SPREAD: f64 = 2.0;
/// Medians of two halves that lie no further apart than this agree, relative to the median of all: differences
/// below it are of no consequence anywhere here.
const DRIFT: f64 = 0.01;
/// Halves agree as well if they lie no further apart than so many standard errors of their difference: three,
/// because a sweep has thousands of series, and one in twenty of them lies beyond two by chance.
const DRIFT_ERRORS: f64 = 3.0;
/// From a plateau's number of samples on, so many rounds pass from one judgement to the next.
const LOOK_EVERY: usize = 10;
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
    TooFew {
        /// How many there are.
        samples: usize,
        /// How many there must be.
        minimum: usize,
    },
    /// The median is not sure enough.
    StandardError {
        /// Its standard error, relative to what is published.
        found: f64,
        /// What would be a plateau.
        allowed: f64,
    },
    /// The first and the second half of the series disagree.
    Drift {
        /// By how much the second median is larger, relative to what is published.
        change: f64,
    },
    /// One half is much noisier than the other, and the median not sure enough to overlook that.
    Spread {
        /// How many times as wide.
        ratio: f64,
    },
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
    fn add(&mut self, megahertz: f64) {
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

    fn accepts(&self, sample: &Sample) -> bool {
        match (sample.clock_megahertz, self.median_megahertz()) {
            (Some(clock), Some(median)) => clock >= ACCEPTED_CLOCK_SHARE * median,
            _ => true,
        }
    }
}

/// How a figure is sampled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplingSettings {
    /// When it is enough.
    pub rule: StoppingRule,
    /// What a sample of several runs should last at least.
    pub sample_time: Duration,
    /// How long to sample for nothing before.
    pub warm_up: Duration,
    /// Budget of the figure for each subject. A subject that is done early leaves its rest to the others. Until
    /// all have their minimum of samples, twice the budget may be spent.
    pub time_out_per_subject: Duration,
}

/// The samples of one subject and figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Times of one run, in the order in which they were taken.
    pub accepted_nanoseconds: Vec<f64>,
    /// Times of those at reduced clock, which count for nothing.
    pub reduced_clock_nanoseconds: Vec<f64>,
    /// Samples that the host queued too late, which count for nothing either.
    pub late_samples: u64,
    /// Runs that each sample is the mean of.
    pub runs_per_sample: u32,
    /// Median clock of the accepted samples.
    pub clock_megahertz: Option<f64>,
    /// Why it ended.
    pub stop: Stop,
    /// What kept it from meeting a criterion, if it met none.
    pub unmet: Option<Unmet>,
}

/// What came of a subject and figure.
#[derive(Debug, Clone, PartialEq)]
pub enum Measured {
    /// Samples.
    Series(Series),
    /// It cannot be measured so.
    Unavailable(String),
}

struct Lane {
    subject: usize,
    runs: u32,
    samples: Vec<Sample>,
    unavailable: Option<String>,
}

impl Lane {
    fn accepted(&self, clocks: &Clocks) -> Vec<f64> {
        let accepted = self.samples.iter().filter(|sample| !sample.is_late && clocks.accepts(sample));
        accepted.map(|sample| sample.nanoseconds).collect()
    }

    fn scale(&self, offset_nanoseconds: f64, step_nanoseconds: f64) -> Scale {
        Scale { offset_nanoseconds, resolution_nanoseconds: step_nanoseconds / f64::from(self.runs) }
    }

    fn series(self, rule: &StoppingRule, clocks: &Clocks, scale: &Scale, timed_out: bool) -> Measured {
        if let Some(reason) = self.unavailable {
            return Measured::Unavailable(reason);
        }
        let (in_time, late): (Vec<&Sample>, Vec<&Sample>) = self.samples.iter().partition(|sample| !sample.is_late);
        let (mut accepted, mut reduced): (Vec<&Sample>, Vec<&Sample>) =
            in_time.iter().partition(|sample| clocks.accepts(sample));
        let times = |samples: &[&Sample]| samples.iter().map(|sample| sample.nanoseconds).collect::<Vec<_>>();
        let (stop, unmet) = match rule.judge(&times(&accepted), scale) {
            Judgement::Enough(stop) => (stop, None),
            Judgement::More(_) if reduced.len() > accepted.len() => {
                // A figure that says what it is worth is better than none.
                accepted = in_time;
                reduced = Vec::new();
                (Stop::ReducedClock, Some(Unmet::Clock))
            }
            Judgement::More(unmet @ Unmet::TooFew { .. }) => (Stop::TimeOutTooFew, Some(unmet)),
            Judgement::More(unmet) if timed_out => (Stop::TimeOutNoise, Some(unmet)),
            Judgement::More(unmet) => (Stop::MaximumSamples, Some(unmet)),
        };
        let clock: Vec<f64> = accepted.iter().filter_map(|sample| sample.clock_megahertz).collect();
        Measured::Series(Series {
            accepted_nanoseconds: times(&accepted),
            reduced_clock_nanoseconds: times(&reduced),
            late_samples: late.len() as u64,
            runs_per_sample: self.runs,
            clock_megahertz: Summary::of(&clock).map(|summary| summary.median),
            stop,
            unmet,
        })
    }
}

/// How many times the budget may be spent on the minimum of samples: a figure of too few is worth little.
pub const PATIENCE: u32 = 2;
/// Calibration ends after this many corrections at the latest.
const CALIBRATIONS: u32 = 4;

/// What is sampled in common rounds.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// The figure.
    pub figure: Figure,
    /// The subjects, as the executor knows them.
    pub subjects: &'a [usize],
    /// About what one run of each takes, where that is known: saves calibration.
    pub hint_nanoseconds: &'a [Option<f64>],
    /// The position of the subject that stands for what timing itself takes. The sureness that is asked of the
    /// others is that of what remains without it.
    pub frame: Option<usize>,
    /// Seed of the order.
    pub seed: u64,
}

/// Samples one figure of all subjects in rounds. Results are in the order of the subjects, and as they were
/// timed: nothing is taken off.
///
/// # Errors
/// When the device failed.
pub fn sample_figure<E: Executor + ?Sized>(
    executor: &mut E,
    compared: &Compared<'_>,
    settings: &SamplingSettings,
    clocks: &mut Clocks,
) -> Result<Vec<Measured>, E::Error> {
    let Compared { figure, subjects, hint_nanoseconds, frame, seed } = *compared;
    let start = executor.now();
    let time_out = settings.time_out_per_subject * u32::try_from(subjects.len()).unwrap_or(u32::MAX);
    let mut lanes = Vec::with_capacity(subjects.len());
    for (position, &subject) in subjects.iter().enumerate() {
        let hint = hint_nanoseconds.get(position).copied().flatten();
        lanes.push(calibrate(executor, figure, subject, hint, settings)?);
    }
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..lanes.len()).filter(|&lane| lanes[lane].unavailable.is_none()).collect();
    let warm_up_end = executor.now() + settings.warm_up.min(time_out / 4);
    'warm_up: while !order.is_empty() {
        for &lane in &order {
            if executor.now() >= warm_up_end {
                break 'warm_up;
            }
            executor.sample(lanes[lane].subject, figure, lanes[lane].runs)?;
        }
    }
    let step = executor.resolution_nanoseconds(figure);
    let offset = |lanes: &[Lane], clocks: &Clocks| {
        let frame = lanes.get(frame?)?.accepted(clocks);
        Summary::of(&frame).map(|summary| summary.median)
    };
    // The frame itself is judged as it is.
    let scale = |lane: &Lane, position: usize, offset: Option<f64>| {
        lane.scale(offset.filter(|_| frame != Some(position)).unwrap_or(0.0), step)
    };
    let mut rule = settings.rule;
    let mut timed_out = false;
    let mut rounds = 0;
    while !order.is_empty() && rounds < settings.rule.maximum_samples {
        shuffle(&mut order, &mut random);
        for &lane in &order {
            // The first round is whole, so that every subject has a sample.
            let elapsed = executor.now() - start;
            let is_over = elapsed >= time_out && rounds >= settings.rule.minimum_samples;
            if rounds > 0 && (is_over || elapsed >= PATIENCE * time_out) {
                timed_out = true;
                break;
            }
            let sample = executor.sample(lanes[lane].subject, figure, lanes[lane].runs)?;
            if let Some(clock) = sample.clock_megahertz {
                clocks.add(clock);
            }
            lanes[lane].samples.push(sample);
        }
        rounds += 1;
        if timed_out || executor.now() - start >= time_out {
            rule.minimum_samples = FEWEST_SAMPLES.min(settings.rule.minimum_samples);
        }
        // Long series are looked at now and then: each look is another chance to find little noise by luck.
        if !timed_out && rounds > PLATEAU_SAMPLES && !rounds.is_multiple_of(LOOK_EVERY) {
            continue;
        }
        let offset = offset(&lanes, clocks);
        let is_enough = |&lane: &usize| {
            let scale = scale(&lanes[lane], lane, offset);
            matches!(rule.judge(&lanes[lane].accepted(clocks), &scale), Judgement::Enough(_))
        };
        if timed_out || order.iter().all(is_enough) {
            break;
        }
    }
    let offset = offset(&lanes, clocks);
    let judged = lanes.into_iter().enumerate().map(|(position, lane)| {
        let scale = scale(&lane, position, offset);
        lane.series(&rule, clocks, &scale, timed_out)
    });
    Ok(judged.collect())
}

/// Finds how many runs make a sample long enough.
fn calibrate<E: Executor + ?Sized>(
    executor: &mut E,
    figure: Figure,
    subject: usize,
    hint_nanoseconds: Option<f64>,
    settings: &SamplingSettings,
) -> Result<Lane, E::Error> {
    let maximum = executor.maximum_runs(subject, figure).max(1);
    let wanted_nanoseconds = settings.sample_time.as_nanos() as f64;
    let runs_for = |nanoseconds: f64| {
        let runs = (wanted_nanoseconds / nanoseconds.max(1.0)).ceil();
        (runs.min(f64::from(maximum)) as u32).max(1)
    };
    let mut runs = hint_nanoseconds.map_or(1, runs_for);
    for calibration in 1..=CALIBRATIONS {
        if let Readiness::Unavailable(reason) = executor.prepare(subject, figure, runs)? {
            return Ok(Lane { subject, runs, samples: Vec::new(), unavailable: Some(reason) });
        }
        // A first run may load code or wake the clocks; it counts for nothing, in the calibration too.
        executor.sample(subject, figure, runs)?;
        if maximum == 1 || calibration == CALIBRATIONS {
            break;
        }
        let better = runs_for(executor.sample(subject, figure, runs)?.nanoseconds);
        // Within a factor of two the sample is long enough, and a graph is not built anew.
        if u64::from(better) <= 2 * u64::from(runs) {
            break;
        }
        runs = better;
    }
    Ok(Lane { subject, runs, samples: Vec::new(), unavailable: None })
}

/// Fisher & Yates.
fn shuffle(order: &mut [usize], random: &mut Pcg64Mcg) {
    for last in (1..order.len()).rev() {
        let other = (u128::from(random.next_u64()) * (last as u128 + 1)) >> 64;
        order.swap(last, other as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::super::statistics::{Verdict, compare};
    use super::*;

    /// A device made of functions of time.
    struct Mock {
        now_ns: f64,
        random: Pcg64Mcg,
        /// Time of one run of each subject at full clock.
        base_ns: Vec<f64>,
        /// Relative deviation of the noise.
        noise: f64,
        /// Clock in MHz as a function of seconds since the start.
        clock: fn(f64) -> f64,
        /// Factor on all times as a function of seconds since the start.
        drift: fn(f64) -> f64,
        /// Which subjects cannot be captured.
        uncapturable: Option<usize>,
        maximum_runs: u32,
        taken: Vec<usize>,
        late_every: usize,
    }

    impl Mock {
        fn new(base_ns: &[f64], noise: f64) -> Self {
            Self {
                now_ns: 0.0,
                random: Pcg64Mcg::seed_from_u64(9),
                base_ns: base_ns.to_vec(),
                noise,
                clock: |_| 1980.0,
                drift: |_| 1.0,
                uncapturable: None,
                maximum_runs: 1000,
                taken: Vec::new(),
                late_every: usize::MAX,
            }
        }

        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.random.next_u64() as f64 / 2f64.powi(64)).sum::<f64>() - 6.0
        }
    }

    impl Executor for Mock {
        type Error = std::convert::Infallible;
        fn maximum_runs(&self, _: usize, figure: Figure) -> u32 {
            if matches!(figure, Figure::Cold | Figure::Latency) { 1 } else { self.maximum_runs }
        }
        fn prepare(&mut self, subject: usize, figure: Figure, _: u32) -> Result<Readiness, Self::Error> {
            if figure == Figure::Graph && self.uncapturable == Some(subject) {
                return Ok(Readiness::Unavailable("it waits".to_owned()));
            }
            Ok(Readiness::Ready)
        }
        fn sample(&mut self, subject: usize, _: Figure, runs: u32) -> Result<Sample, Self::Error> {
            let seconds = self.now_ns * 1e-9;
            let clock = (self.clock)(seconds);
            let nanoseconds =
                self.base_ns[subject] * (self.drift)(seconds) * (1980.0 / clock) * (1.0 + self.noise * self.normal());
            self.now_ns += nanoseconds * f64::from(runs) + 1e5;
            self.taken.push(subject);
            let is_late = self.taken.len().is_multiple_of(self.late_every);
            Ok(Sample { nanoseconds, clock_megahertz: Some(clock), is_late })
        }
        fn now(&self) -> Duration {
            Duration::from_nanos(self.now_ns as u64)
        }
    }

    fn settings() -> SamplingSettings {
        SamplingSettings {
            rule: StoppingRule { minimum_samples: 10, maximum_samples: 200, relative_standard_error: 0.005 },
            sample_time: Duration::from_micros(500),
            warm_up: Duration::from_millis(5),
            time_out_per_subject: Duration::from_secs(2),
        }
    }

    fn run(mock: &mut Mock, figure: Figure, settings: &SamplingSettings, clocks: &mut Clocks) -> Vec<Measured> {
        let subjects: Vec<usize> = (0..mock.base_ns.len()).collect();
        let compared = Compared { figure, subjects: &subjects, hint_nanoseconds: &[], frame: None, seed: 42 };
        sample_figure(mock, &compared, settings, clocks).unwrap_or_else(|never| match never {})
    }

    fn series(measured: &Measured) -> &Series {
        match measured {
            Measured::Series(series) => series,
            Measured::Unavailable(reason) => panic!("unavailable: {reason}"),
        }
    }

    #[test]
    fn quiet_samples_stop_at_the_minimum() {
        let measured = run(&mut Mock::new(&[1e6], 0.001), Figure::Cold, &settings(), &mut Clocks::default());
        let series = series(&measured[0]);
        assert_eq!((series.accepted_nanoseconds.len(), series.stop), (10, Stop::Noise));
        assert_eq!(series.clock_megahertz, Some(1980.0));
    }

    #[test]
    fn noisy_samples_go_on_until_the_median_is_sure() {
        let measured = run(&mut Mock::new(&[1e6], 0.02), Figure::Cold, &settings(), &mut Clocks::default());
        let series = series(&measured[0]);
        let summary = Summary::of(&series.accepted_nanoseconds).unwrap();
        assert!(summary.count > 10, "{series:?}");
        let asked = if series.stop == Stop::Plateau { 0.015 } else { 0.005 };
        assert!(series.stop.is_met() && summary.standard_error <= asked * summary.median, "{series:?}");
        assert_eq!(series.unmet, None);
    }

    #[test]
    fn noise_that_no_number_of_samples_mends_ends_at_a_plateau() {
        for (noise, seed) in [(0.05, 1), (0.05, 2), (0.1, 1), (0.1, 2)] {
            let mut mock = Mock { random: Pcg64Mcg::seed_from_u64(seed), ..Mock::new(&[1e6], noise) };
            let measured = run(&mut mock, Figure::Cold, &settings(), &mut Clocks::default());
            let series = series(&measured[0]);
            assert_eq!(series.stop, Stop::Plateau, "{noise}");
            let summary = Summary::of(&series.accepted_nanoseconds).unwrap();
            assert!(summary.count >= PLATEAU_SAMPLES && summary.standard_error <= 0.015 * summary.median);
        }
    }

    #[test]
    fn noise_that_leaves_the_median_unsure_is_no_plateau_however_even_it_is() {
        let measured = run(&mut Mock::new(&[1e6], 0.3), Figure::Cold, &settings(), &mut Clocks::default());
        let series = series(&measured[0]);
        assert_eq!(series.stop, Stop::MaximumSamples);
        let Some(unmet @ Unmet::StandardError { found, allowed }) = series.unmet else { panic!("{series:?}") };
        assert!(found > allowed && allowed == 0.015);
        assert!(unmet.to_string().contains("1.50 % would be a plateau"), "{unmet}");
    }

    #[test]
    fn a_drift_is_no_plateau() {
        let unmet = |samples: Vec<f64>| match settings().rule.judge(&samples, &Scale::default()) {
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
        let rule = settings().rule;
        let mut random = Pcg64Mcg::seed_from_u64(5);
        let mut uniform = || random.next_u64() as f64 / 2f64.powi(64);
        // As of a scan of two launches: 0.9 us apart, half of the samples in each.
        let samples: Vec<f64> =
            (0..PEAKS_SAMPLES).map(|_| 5e3 + 200.0 * uniform() + if uniform() < 0.5 { 900.0 } else { 0.0 }).collect();
        let judge = |samples: &[f64]| rule.judge(samples, &Scale::default());
        assert_eq!(judge(&samples), Judgement::Enough(Stop::TwoPeaks));
        assert!(matches!(judge(&samples[..PEAKS_SAMPLES / 2]), Judgement::More(_)));
        // One peak after the other is no property of the subject.
        let mut sorted = samples;
        sorted.sort_by(f64::total_cmp);
        assert!(matches!(judge(&sorted), Judgement::More(Unmet::Drift { .. })));
    }

    #[test]
    fn a_short_series_at_the_time_out_is_enough_if_its_noise_is_small() {
        let settings = SamplingSettings {
            rule: StoppingRule { minimum_samples: 20, ..settings().rule },
            time_out_per_subject: Duration::from_millis(125),
            ..settings()
        };
        // 10 ms a sample: 12 samples in the budget.
        let slow = |noise| {
            let measured = run(&mut Mock::new(&[1e7], noise), Figure::Cold, &settings, &mut Clocks::default());
            series(&measured[0]).clone()
        };
        let quiet = slow(0.001);
        assert_eq!(quiet.stop, Stop::Noise);
        assert!((FEWEST_SAMPLES..15).contains(&quiet.accepted_nanoseconds.len()), "{quiet:?}");
        // A noisy one goes on for as long as patience lasts, and says what it lacks.
        let noisy = slow(0.1);
        assert!(noisy.accepted_nanoseconds.len() >= 20 && noisy.stop == Stop::TimeOutNoise, "{noisy:?}");
        assert!(matches!(noisy.unmet, Some(Unmet::StandardError { .. } | Unmet::Drift { .. })), "{noisy:?}");
    }

    #[test]
    fn nothing_is_asked_to_be_surer_than_half_a_step_of_the_clock() {
        let rule = settings().rule;
        // Steps of 32 ns on 2 us: half a step is 0.8 %, more than the 0.5 % asked for.
        let stepped: Vec<f64> = (0..30).map(|index| 2000.0 + 32.0 * f64::from(index * 7 % 5)).collect();
        let scale = Scale { resolution_nanoseconds: 32.0, ..Scale::default() };
        assert_eq!(rule.judge(&stepped, &scale), Judgement::Enough(Stop::Noise));
        assert!(matches!(rule.judge(&stepped, &Scale::default()), Judgement::More(_)));
    }

    #[test]
    fn what_is_asked_of_a_time_without_the_frame_is_that_of_what_remains() {
        let rule = settings().rule;
        let samples: Vec<f64> = (0..30).map(|index| 4000.0 + 20.0 * f64::from(index * 7 % 10)).collect();
        assert_eq!(rule.judge(&samples, &Scale::default()), Judgement::Enough(Stop::Noise));
        let scale = Scale { offset_nanoseconds: 3000.0, ..Scale::default() };
        assert!(
            matches!(rule.judge(&samples, &scale), Judgement::More(Unmet::StandardError { found, .. }) if found > 0.005)
        );
    }

    #[test]
    fn the_frame_is_sampled_in_the_same_rounds_and_taken_off_nobody() {
        let mut mock = Mock::new(&[2e3, 5e3], 0.01);
        let (subjects, frame) = (&[1, 0], Some(1));
        let compared = Compared { figure: Figure::Cold, subjects, hint_nanoseconds: &[], frame, seed: 1 };
        let measured = sample_figure(&mut mock, &compared, &settings(), &mut Clocks::default())
            .unwrap_or_else(|never| match never {});
        let median = |index: usize| Summary::of(&series(&measured[index]).accepted_nanoseconds).unwrap().median;
        assert!((median(0) / 5e3 - 1.0).abs() < 0.02 && (median(1) / 2e3 - 1.0).abs() < 0.02);
        let count = |index: usize| series(&measured[index]).accepted_nanoseconds.len();
        assert_eq!(count(0), count(1));
        let alone = run(&mut Mock::new(&[5e3], 0.01), Figure::Cold, &settings(), &mut Clocks::default());
        assert!(count(0) > series(&alone[0]).accepted_nanoseconds.len());
    }

    #[test]
    fn equal_subjects_stay_equal_under_drift_and_steps() {
        for drift in
            [(|seconds| 1.0 + 0.5 * seconds) as fn(f64) -> f64, |seconds| if seconds < 0.02 { 1.0 } else { 1.2 }]
        {
            let mut mock = Mock { drift, ..Mock::new(&[1e6, 1e6, 1.05e6], 0.002) };
            let mut settings = settings();
            settings.rule.minimum_samples = 40;
            let measured = run(&mut mock, Figure::Cold, &settings, &mut Clocks::default());
            let median = |index: usize| Summary::of(&series(&measured[index]).accepted_nanoseconds).unwrap().median;
            assert!((median(1) / median(0) - 1.0).abs() < 0.01, "{} {}", median(0), median(1));
            assert!((median(2) / median(0) - 1.05).abs() < 0.015, "{} {}", median(0), median(2));
        }
    }

    #[test]
    fn a_slower_copy_is_told_apart_and_an_equal_one_is_not() {
        for seed in 0..10 {
            let mut mock = Mock::new(&[2e5, 2e5, 2.1e5], 0.003);
            mock.random = Pcg64Mcg::seed_from_u64(seed);
            let mut settings = settings();
            settings.rule.minimum_samples = 20;
            let measured = run(&mut mock, Figure::Stream, &settings, &mut Clocks::default());
            let samples = |index: usize| &series(&measured[index]).accepted_nanoseconds;
            assert_eq!(compare(samples(0), samples(1), 0.01), Verdict::Same);
            assert_eq!(compare(samples(0), samples(2), 0.01), Verdict::Slower);
        }
    }

    #[test]
    fn rounds_visit_every_subject_once_in_orders_that_the_seed_decides() {
        let orders = |seed: u64| {
            let mut mock = Mock::new(&[1e5; 5], 0.001);
            let settings = SamplingSettings { warm_up: Duration::ZERO, ..settings() };
            let subjects = &[0, 1, 2, 3, 4];
            let compared = Compared { figure: Figure::Cold, subjects, hint_nanoseconds: &[], frame: None, seed };
            sample_figure(&mut mock, &compared, &settings, &mut Clocks::default())
                .unwrap_or_else(|never| match never {});
            // One calibrating sample each comes first.
            mock.taken.split_off(5)
        };
        let taken = orders(1);
        assert_eq!(taken.len() % 5, 0);
        for round in taken.chunks(5) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4]);
        }
        assert!(taken.chunks(5).any(|round| round != &taken[..5]), "the order changes from round to round");
        assert_eq!(orders(1), taken);
        assert_ne!(orders(2), taken);
    }

    #[test]
    fn samples_at_reduced_clock_are_discarded_and_counted() {
        // A fifth of the time the clock is down by a quarter.
        let clock = |seconds: f64| if (seconds * 100.0).fract() < 0.2 { 1485.0 } else { 1980.0 };
        let mut mock = Mock { clock, ..Mock::new(&[1e6, 2e6], 0.001) };
        let mut settings = settings();
        settings.rule.minimum_samples = 30;
        for measured in run(&mut mock, Figure::Cold, &settings, &mut Clocks::default()) {
            let series = series(&measured);
            assert!(!series.reduced_clock_nanoseconds.is_empty());
            let summary = Summary::of(&series.accepted_nanoseconds).unwrap();
            assert!(summary.maximum < 1.02 * summary.minimum, "{summary:?}");
            assert_eq!(series.stop, Stop::Noise);
        }
    }

    #[test]
    fn a_clock_that_stays_down_is_said_and_not_hidden() {
        let mut clocks = Clocks::default();
        run(&mut Mock::new(&[1e5; 20], 0.001), Figure::Cold, &settings(), &mut clocks);
        let mut mock = Mock { clock: |_| 1200.0, ..Mock::new(&[1e6], 0.001) };
        let settings = SamplingSettings { time_out_per_subject: Duration::from_millis(50), ..settings() };
        let measured = run(&mut mock, Figure::Cold, &settings, &mut clocks);
        let series = series(&measured[0]);
        assert_eq!(series.stop, Stop::ReducedClock);
        assert!(!series.stop.is_met() && !series.accepted_nanoseconds.is_empty());
        assert_eq!(series.clock_megahertz, Some(1200.0));
    }

    #[test]
    fn a_time_out_names_the_criterion_that_was_not_met() {
        let short =
            |milliseconds| SamplingSettings { time_out_per_subject: Duration::from_millis(milliseconds), ..settings() };
        let measured = run(&mut Mock::new(&[1e7], 0.001), Figure::Cold, &short(40), &mut Clocks::default());
        let too_few = series(&measured[0]);
        assert_eq!(too_few.stop, Stop::TimeOutTooFew);
        let samples = too_few.accepted_nanoseconds.len();
        assert_eq!(too_few.unmet, Some(Unmet::TooFew { samples, minimum: 10 }));
        let measured = run(&mut Mock::new(&[1e6], 0.2), Figure::Cold, &short(30), &mut Clocks::default());
        assert_eq!(series(&measured[0]).stop, Stop::TimeOutNoise);
        // A drift never meets a criterion.
        let mut mock = Mock { drift: |seconds| 1.0 + 100.0 * seconds, ..Mock::new(&[1e5], 0.0) };
        let mut settings = settings();
        settings.rule.maximum_samples = 30;
        let measured = run(&mut mock, Figure::Cold, &settings, &mut Clocks::default());
        assert_eq!(series(&measured[0]).stop, Stop::MaximumSamples);
    }

    #[test]
    fn even_the_slowest_subject_gets_a_sample() {
        let settings = SamplingSettings { time_out_per_subject: Duration::from_millis(1), ..settings() };
        for measured in run(&mut Mock::new(&[1e8, 1e8], 0.0), Figure::Stream, &settings, &mut Clocks::default()) {
            assert_eq!(series(&measured).accepted_nanoseconds.len(), 1);
        }
    }

    #[test]
    fn samples_of_short_runs_are_made_long_enough_and_no_longer_than_possible() {
        for (base_ns, maximum_runs, expected) in [(1e3, 1000, 250..=510), (1e3, 64, 64..=64), (1e7, 1000, 1..=1)] {
            let mut mock = Mock { maximum_runs, ..Mock::new(&[base_ns], 0.001) };
            let measured = run(&mut mock, Figure::Graph, &settings(), &mut Clocks::default());
            let runs = series(&measured[0]).runs_per_sample;
            assert!(expected.contains(&runs), "{runs} runs of {base_ns} ns");
        }
    }

    #[test]
    fn late_samples_count_for_nothing() {
        let mut mock = Mock { late_every: 4, ..Mock::new(&[1e6], 0.001) };
        let measured = run(&mut mock, Figure::Cold, &settings(), &mut Clocks::default());
        let series = series(&measured[0]);
        assert!(series.late_samples > 0);
        assert_eq!(series.accepted_nanoseconds.len(), 10);
    }

    #[test]
    fn what_cannot_be_captured_says_so_and_keeps_nobody_else() {
        let mut mock = Mock { uncapturable: Some(0), ..Mock::new(&[1e5, 1e5], 0.001) };
        let measured = run(&mut mock, Figure::Graph, &settings(), &mut Clocks::default());
        assert_eq!(measured[0], Measured::Unavailable("it waits".to_owned()));
        assert_eq!(series(&measured[1]).stop, Stop::Noise);
    }

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
