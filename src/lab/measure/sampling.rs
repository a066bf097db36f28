//! Which samples are taken, in which order, when it is enough, and which are thrown away.
//!
//! Everything that is compared at a point is sampled in rounds: each round takes one sample of each subject,
//! in an order that is shuffled anew from a stored seed. Clocks and temperatures drift over seconds, rounds
//! take milliseconds, so drift meets all subjects alike. Nobody leaves the rounds before everybody is done.
//!
//! A sample brings the multiprocessor clock from right before and right after it. One that ran at less than
//! 95 % of the run's median clock is discarded and counted, see [`Clocks`]. Sampling stops by noise, see
//! [`StoppingRule`]; a time-out says which criterion was not met.
//!
//! The loop knows nothing of GPUs: it asks a [`Sampler`], and the tests below ask one of their own with
//! synthetic noise, drift, steps and throttling, whose clock is a number.

use super::clocks::Clocks;
use super::stopping::{FEWEST_SAMPLES, Judgement, PLATEAU_SAMPLES, Scale, Stop, StoppingRule, Unmet};
use crate::lab::statistics::Summary;
use crate::strategy::named;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::time::Duration;

named! {
    /// What a time is the time of.
    pub enum Figure as "figure" {
        /// One run with nothing of its arrays in the L2; launch latency outside the events.
        Cold = "cold",
        /// Many launches, prepared before, on a stream one after the other. At small n the rate at which the host
        /// launches.
        Stream = "stream",
        /// Many runs in one replayed CUDA graph: from one to the next, which may overlap.
        Graph = "graph",
        /// From the host's call to the result visible on the host, the stream idle before.
        Latency = "latency",
        /// One run behind a kernel that takes no part in programmatic launches, in one replayed graph of such pairs, without
        /// what the same graph takes of that kernel alone.
        Behind = "behind",
        /// Calls of the public API one after the other, until the last of them is done, by the host's clock; cudarc's event
        /// tracking as it comes. Of a peer, calls of its own function.
        Call = "call",
        /// The same with cudarc's event tracking switched off.
        UntrackedCall = "untracked-call",
    }
}

impl Figure {
    /// Those of a sweep that names none.
    pub const USUAL: [Self; 4] = [Self::Cold, Self::Stream, Self::Graph, Self::Latency];

    /// Whether what remains without a frame is the figure: what the queue takes with nothing in the subject's place.
    pub const fn has_frame(self) -> bool {
        matches!(self, Self::Cold | Self::Behind)
    }

    /// Whether runs are replayed from a graph.
    pub const fn is_replayed(self) -> bool {
        matches!(self, Self::Graph | Self::Behind)
    }

    /// Whether it is one of calls.
    pub const fn is_of_calls(self) -> bool {
        matches!(self, Self::Call | Self::UntrackedCall)
    }

    /// Whether the host's clock says it, and not events on the device.
    pub const fn is_by_host(self) -> bool {
        matches!(self, Self::Latency) || self.is_of_calls()
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
pub trait Sampler {
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
        let accepted = self.samples.iter().filter(|sample| !sample.is_late && clocks.accepts(sample.clock_megahertz));
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
            in_time.iter().partition(|sample| clocks.accepts(sample.clock_megahertz));
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
/// From a plateau's number of samples on, so many rounds pass from one judgement to the next.
const LOOK_EVERY: usize = 10;
/// Calibration ends after this many corrections at the latest.
const CALIBRATIONS: u32 = 4;

/// What is sampled in common rounds.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// The figure.
    pub figure: Figure,
    /// The subjects, as the sampler knows them.
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
pub fn sample_figure<S: Sampler + ?Sized>(
    sampler: &mut S,
    compared: &Compared<'_>,
    settings: &SamplingSettings,
    clocks: &mut Clocks,
) -> Result<Vec<Measured>, S::Error> {
    let Compared { figure, subjects, hint_nanoseconds, frame, seed } = *compared;
    let start = sampler.now();
    let time_out = settings.time_out_per_subject * u32::try_from(subjects.len()).unwrap_or(u32::MAX);
    let mut lanes = Vec::with_capacity(subjects.len());
    for (position, &subject) in subjects.iter().enumerate() {
        let hint = hint_nanoseconds.get(position).copied().flatten();
        lanes.push(calibrate(sampler, figure, subject, hint, settings)?);
    }
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..lanes.len()).filter(|&lane| lanes[lane].unavailable.is_none()).collect();
    let warm_up_end = sampler.now() + settings.warm_up.min(time_out / 4);
    'warm_up: while !order.is_empty() {
        for &lane in &order {
            if sampler.now() >= warm_up_end {
                break 'warm_up;
            }
            sampler.sample(lanes[lane].subject, figure, lanes[lane].runs)?;
        }
    }
    let step = sampler.resolution_nanoseconds(figure);
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
            let elapsed = sampler.now() - start;
            let is_over = elapsed >= time_out && rounds >= settings.rule.minimum_samples;
            if rounds > 0 && (is_over || elapsed >= PATIENCE * time_out) {
                timed_out = true;
                break;
            }
            let sample = sampler.sample(lanes[lane].subject, figure, lanes[lane].runs)?;
            if let Some(clock) = sample.clock_megahertz {
                clocks.add(clock);
            }
            lanes[lane].samples.push(sample);
        }
        rounds += 1;
        if timed_out || sampler.now() - start >= time_out {
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
fn calibrate<S: Sampler + ?Sized>(
    sampler: &mut S,
    figure: Figure,
    subject: usize,
    hint_nanoseconds: Option<f64>,
    settings: &SamplingSettings,
) -> Result<Lane, S::Error> {
    let maximum = sampler.maximum_runs(subject, figure).max(1);
    let wanted_nanoseconds = settings.sample_time.as_nanos() as f64;
    let runs_for = |nanoseconds: f64| {
        let runs = (wanted_nanoseconds / nanoseconds.max(1.0)).ceil();
        (runs.min(f64::from(maximum)) as u32).max(1)
    };
    let mut runs = hint_nanoseconds.map_or(1, runs_for);
    for calibration in 1..=CALIBRATIONS {
        if let Readiness::Unavailable(reason) = sampler.prepare(subject, figure, runs)? {
            return Ok(Lane { subject, runs, samples: Vec::new(), unavailable: Some(reason) });
        }
        // A first run may load code or wake the clocks; it counts for nothing, in the calibration too.
        sampler.sample(subject, figure, runs)?;
        if maximum == 1 || calibration == CALIBRATIONS {
            break;
        }
        let better = runs_for(sampler.sample(subject, figure, runs)?.nanoseconds);
        // Within a factor of two the sample is long enough, and a graph is not built anew.
        if u64::from(better) <= 2 * u64::from(runs) {
            break;
        }
        runs = better;
    }
    Ok(Lane { subject, runs, samples: Vec::new(), unavailable: None })
}

/// Fisher & Yates.
pub(super) fn shuffle<T>(order: &mut [T], random: &mut Pcg64Mcg) {
    for last in (1..order.len()).rev() {
        let other = (u128::from(random.next_u64()) * (last as u128 + 1)) >> 64;
        order.swap(last, other as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::statistics::{Difference, compare};

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

    impl Sampler for Mock {
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
        let Ok(measured) = sample_figure(mock, &compared, settings, clocks);
        measured
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
    fn the_frame_is_sampled_in_the_same_rounds_and_taken_off_nobody() {
        let mut mock = Mock::new(&[2e3, 5e3], 0.01);
        let (subjects, frame) = (&[1, 0], Some(1));
        let compared = Compared { figure: Figure::Cold, subjects, hint_nanoseconds: &[], frame, seed: 1 };
        let Ok(measured) = sample_figure(&mut mock, &compared, &settings(), &mut Clocks::default());
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
            assert_eq!(compare(samples(0), samples(1), 0.01), Difference::Same);
            assert_eq!(compare(samples(0), samples(2), 0.01), Difference::Slower);
        }
    }

    #[test]
    fn rounds_visit_every_subject_once_in_orders_that_the_seed_decides() {
        let orders = |seed: u64| {
            let mut mock = Mock::new(&[1e5; 5], 0.001);
            let settings = SamplingSettings { warm_up: Duration::ZERO, ..settings() };
            let subjects = &[0, 1, 2, 3, 4];
            let compared = Compared { figure: Figure::Cold, subjects, hint_nanoseconds: &[], frame: None, seed };
            let Ok(_) = sample_figure(&mut mock, &compared, &settings, &mut Clocks::default());
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
}
